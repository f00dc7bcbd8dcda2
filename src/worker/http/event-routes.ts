import { Hono } from "hono";
import { statePageQuery } from "../../shared/requests.ts";
import { EVENT_STATES } from "../../shared/schema.ts";
import { EVENT_CURSOR, pageEvents, replay } from "../webhooks/list.ts";
import { auditContext } from "./audit-and-etag.ts";
import { limitBody } from "./body-limit.ts";
import type { HttpEnv } from "./environment.ts";
import { authenticateServer } from "./middleware.ts";
import { readCursor, readQuery } from "./queries.ts";
import { jsonResponse, pageResponse } from "./response.ts";

/** Routes that list webhook events and send them again. */
export const eventRoutes = new Hono<HttpEnv>()
  .get("/v1/events", authenticateServer, readQuery(statePageQuery(EVENT_STATES)), async (c) => {
    const { per_page: perPage, cursor, state = null } = c.req.valid("query");
    const page = { state, after: readCursor(EVENT_CURSOR, cursor), perPage };
    const { events, next } = await pageEvents(c.get("context"), c.get("caller").id, page);
    return pageResponse(c, { events }, EVENT_CURSOR, next);
  })

  .post("/v1/events/:id/replay", limitBody, authenticateServer, async (c) => {
    const eventId = c.req.param("id");
    return jsonResponse(c, await replay(c.get("context"), c.get("caller").id, eventId, auditContext(c)), 202);
  });
