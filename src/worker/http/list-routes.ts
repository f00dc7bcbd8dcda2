import { zValidator } from "@hono/zod-validator";
import { Hono, type Context as HonoContext } from "hono";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { pageQuery } from "../../shared/requests.ts";
import { decodeCursor, pageBadges } from "../badges/list.ts";
import { Refusal } from "../refusal.ts";
import { requireServer } from "./authentication.ts";
import type { HttpEnv } from "./environment.ts";
import { jsonResponse, methodNotAllowed } from "./response.ts";

/** Checks credentials before anything else, so that a stranger learns nothing from how a malformed request is refused. */
export const authenticateServer = async (c: HonoContext<HttpEnv>, next: () => Promise<void>) => {
  await requireServer(c);
  await next();
};

/** The application that `authenticateServer` let in. */
export function authenticatedApplication(c: HonoContext<HttpEnv>): ApplicationId {
  const applicationId = c.get("application");
  if (applicationId === undefined) throw new Refusal("INVALID_CREDENTIALS");
  return applicationId;
}

export const readPageQuery = zValidator("query", pageQuery, (result) => {
  if (result.success) return;
  const isPerPage = result.error.issues.some(({ path }) => path[0] === "per_page");
  // Otherwise only a repeated cursor can be invalid.
  throw new Refusal(isPerPage ? "INVALID_PER_PAGE" : "INVALID_CURSOR");
});

/** Routes with which an application's server pages its badges (contract section 4). */
export const listRoutes = new Hono<HttpEnv>()
  .get("/v1/badges", authenticateServer, readPageQuery, (c) => pageResponse(c, null, c.req.valid("query")))
  .all("/v1/badges", methodNotAllowed("GET", "HEAD"))

  .get("/v1/users/:id/badges", authenticateServer, readPageQuery, (c) =>
    pageResponse(c, c.req.param("id"), c.req.valid("query")),
  )
  .all("/v1/users/:id/badges", methodNotAllowed("GET", "HEAD"));

async function pageResponse(
  c: HonoContext<HttpEnv>,
  userId: string | null,
  query: { per_page: number; cursor?: string | undefined },
): Promise<Response> {
  const applicationId = authenticatedApplication(c);
  const after = query.cursor === undefined ? 0 : decodeCursor(query.cursor);
  if (after === null) throw new Refusal("INVALID_CURSOR");
  const page = { applicationId, userId, after, perPage: query.per_page };
  const { badges, nextCursor } = await pageBadges(c.get("context"), page);
  const response = jsonResponse(c, { badges });
  if (nextCursor !== null) response.headers.set("pagination-cursor", nextCursor);
  return response;
}
