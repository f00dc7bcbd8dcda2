import { Hono } from "hono";
import { invitationLinkOf } from "../../shared/invitation-link.ts";
import { historyPageQuery, invitationPageQuery, pageQuery, statePageQuery } from "../../shared/requests.ts";
import { EVENT_STATES } from "../../shared/schema.ts";
import { ApiError } from "../api-error.ts";
import { ACCESS_CURSOR, pageAccess } from "../applications/access.ts";
import { readStatistics } from "../applications/read-statistics.ts";
import { HISTORY_CURSOR, pageHistory } from "../history/list.ts";
import { invitationCursor, pageInvitations } from "../invitations/list.ts";
import { findSettings } from "../storage/settings.ts";
import { EVENT_CURSOR, pageEvents, replay } from "../webhooks/list.ts";
import { requireBadgeNumber } from "./badge-routes.ts";
import { auditContext } from "./change-request.ts";
import type { HttpEnv } from "./environment.ts";
import { authenticatedApplicationId, authenticateOperator, authenticateServer, pageResponse } from "./list-routes.ts";
import { hasPass } from "./pass-routes.ts";
import { readCursor, readQuery, readTime } from "./queries.ts";
import { limitBody } from "./request-stream.ts";
import { jsonResponse } from "./response.ts";

/**
 * Routes for an application's settings, invitations, events and counts, which the console also calls (contract section
 * 19).
 */
export const overviewRoutes = new Hono<HttpEnv>()
  .get("/v1/application", authenticateServer, async (c) => {
    const settings = await findSettings(c.get("context").db, authenticatedApplicationId(c));
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

  .get("/v1/invitations", authenticateServer, readQuery(invitationPageQuery), async (c) => {
    const { per_page: perPage, cursor, state = null, q: text = null, from, until } = c.req.valid("query");
    const span = { from: readTime(from), until: readTime(until) };
    const codec = invitationCursor(span);
    const { invitations, next } = await pageInvitations(c.get("context"), {
      applicationId: authenticatedApplicationId(c),
      ...{ state, text, ...span, perPage },
      after: readCursor(codec, cursor),
    });
    return pageResponse(c, { invitations }, codec, next);
  })

  .get("/v1/access", authenticateOperator, readQuery(pageQuery), async (c) => {
    const { per_page: perPage, cursor } = c.req.valid("query");
    const page = { after: readCursor(ACCESS_CURSOR, cursor), perPage };
    const { people, next } = await pageAccess(c.get("context"), authenticatedApplicationId(c), page);
    return pageResponse(c, { people }, ACCESS_CURSOR, next);
  })

  .get("/v1/history", authenticateServer, readQuery(historyPageQuery), async (c) => {
    const { per_page: perPage, cursor, badge, since, until, ...query } = c.req.valid("query");
    const { user: userId = null, actor: actorName = null, action = null } = query;
    const { history, next } = await pageHistory(c.get("context"), {
      applicationId: authenticatedApplicationId(c),
      badge: badge === undefined ? null : requireBadgeNumber(badge),
      since: readTime(since),
      until: readTime(until),
      ...{ userId, actorName, action, perPage },
      after: readCursor(HISTORY_CURSOR, cursor),
    });
    return pageResponse(c, { history }, HISTORY_CURSOR, next);
  })

  .get("/v1/events", authenticateServer, readQuery(statePageQuery(EVENT_STATES)), async (c) => {
    const { per_page: perPage, cursor, state = null } = c.req.valid("query");
    const page = { state, after: readCursor(EVENT_CURSOR, cursor), perPage };
    const { events, next } = await pageEvents(c.get("context"), authenticatedApplicationId(c), page);
    return pageResponse(c, { events }, EVENT_CURSOR, next);
  })

  .post("/v1/events/:id/replay", limitBody, authenticateServer, async (c) => {
    const eventId = c.req.param("id") ?? "";
    return jsonResponse(
      c,
      await replay(c.get("context"), authenticatedApplicationId(c), eventId, auditContext(c)),
      202,
    );
  })

  .get("/v1/stats", authenticateServer, async (c) =>
    jsonResponse(c, await readStatistics(c.get("context"), authenticatedApplicationId(c))),
  );
