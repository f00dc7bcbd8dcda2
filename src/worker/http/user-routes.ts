import { Hono, type Context as HonoContext } from "hono";
import { userId as userIdSchema } from "../../shared/requests.ts";
import { ApiError } from "../api-error.ts";
import { changeBlock, eraseUser } from "../users/block-and-erase.ts";
import { isUserBlocked } from "../users/list.ts";
import { auditContext, readReason } from "./audit-and-etag.ts";
import { decodePercent } from "./authentication.ts";
import { limitBody } from "./body-limit.ts";
import type { HttpEnv } from "./environment.ts";
import { authenticateServer } from "./middleware.ts";
import { jsonResponse } from "./response.ts";

/** Routes with which an application's server blocks and erases users. */
export const userRoutes = new Hono<HttpEnv>()
  .get("/v1/users/:id", authenticateServer, async (c) => {
    const userId = c.req.param("id");
    return jsonResponse(c, {
      userId,
      blocked: await isUserBlocked(c.get("context"), c.get("caller"), userId),
    });
  })

  .patch("/v1/users/:id/block", limitBody, authenticateServer, (c) => changeBlockOf(c, "block"))
  .patch("/v1/users/:id/unblock", limitBody, authenticateServer, (c) => changeBlockOf(c, "unblock"))

  .patch("/v1/users/:id/erase", limitBody, authenticateServer, async (c) => {
    const userId = requireUserId(c);
    // The history does not keep the reason, because it may name the erased user.
    await readReason(c);
    const audit = auditContext(c);
    return jsonResponse(c, await eraseUser(c.get("context"), c.get("caller"), userId, audit));
  });

async function changeBlockOf(c: HonoContext<HttpEnv>, kind: "block" | "unblock"): Promise<Response> {
  const userId = requireUserId(c);
  const audit = auditContext(c, await readReason(c));
  return jsonResponse(c, await changeBlock(c.get("context"), c.get("caller"), userId, kind, audit));
}

/**
 * The user of the path. Rejects escapes that Hono cannot decode and leaves unchanged, because they would name another
 * user.
 */
function requireUserId(c: HonoContext<HttpEnv>): string {
  const parsed = userIdSchema.safeParse(c.req.param("id"));
  if (!parsed.success || decodePercent(new URL(c.req.url).pathname) === null) throw new ApiError("INVALID_USERID");
  return parsed.data;
}
