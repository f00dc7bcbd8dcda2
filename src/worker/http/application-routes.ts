import { Hono } from "hono";
import { invitationLinkOf } from "../../shared/invitation-link.ts";
import { pageQuery } from "../../shared/requests.ts";
import { ApiError } from "../api-error.ts";
import { ACCESS_CURSOR, pageAccess } from "../applications/access.ts";
import { readStatistics } from "../applications/read-statistics.ts";
import { findSettings } from "../storage/settings.ts";
import type { HttpEnv } from "./environment.ts";
import { authenticateOperator, authenticateServer } from "./middleware.ts";
import { hasPass } from "./pass-routes.ts";
import { readCursor, readQuery } from "./queries.ts";
import { jsonResponse, pageResponse } from "./response.ts";

/** Routes that return an application's settings, the people with access to it, and its counts. */
export const applicationRoutes = new Hono<HttpEnv>()
  .get("/v1/application", authenticateServer, async (c) => {
    const settings = await findSettings(c.get("context").db, c.get("caller").id);
    if (!settings) throw new ApiError("INVALID_CREDENTIALS");
    const { reuseAfterSeconds: _, signatureLifetimeSeconds, invitationLink: own, ...shown } = settings;
    const publicUrl = c.get("context").publicUrl();
    const { applicationId } = settings;
    const invitationLink = invitationLinkOf({ applicationId, own }, { publicUrl, hasPass: hasPass(c.env) });
    const signedIn = c.get("consoleUser");
    return jsonResponse(c, {
      ...shown,
      ...(signatureLifetimeSeconds !== null && { signatureLifetimeSeconds }),
      ...(invitationLink !== null && { invitationLink }),
      ...(signedIn && { signedIn }),
    });
  })

  .get("/v1/access", authenticateOperator, readQuery(pageQuery), async (c) => {
    const { per_page: perPage, cursor } = c.req.valid("query");
    const page = { after: readCursor(ACCESS_CURSOR, cursor), perPage };
    const { people, next } = await pageAccess(c.get("context"), c.get("caller").id, page);
    return pageResponse(c, { people }, ACCESS_CURSOR, next);
  })

  .get("/v1/stats", authenticateServer, async (c) =>
    jsonResponse(c, await readStatistics(c.get("context"), c.get("caller").id)),
  );
