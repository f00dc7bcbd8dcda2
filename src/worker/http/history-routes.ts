import { Hono } from "hono";
import { historyPageQuery } from "../../shared/requests.ts";
import { HISTORY_CURSOR, pageHistory } from "../history/list.ts";
import type { HttpEnv } from "./environment.ts";
import { authenticateServer } from "./middleware.ts";
import { requireBadgeNumber } from "./params.ts";
import { readCursor, readQuery, readTime } from "./queries.ts";
import { pageResponse } from "./response.ts";

/** The route that lists who did what. */
export const historyRoutes = new Hono<HttpEnv>().get(
  "/v1/history",
  authenticateServer,
  readQuery(historyPageQuery),
  async (c) => {
    const { per_page: perPage, cursor, badge, since, until, ...query } = c.req.valid("query");
    const { user: userId = null, actor: actorName = null, action = null } = query;
    const { history, next } = await pageHistory(c.get("context"), {
      applicationId: c.get("caller").id,
      badge: badge === undefined ? null : requireBadgeNumber(badge),
      since: readTime(since),
      until: readTime(until),
      ...{ userId, actorName, action, perPage },
      after: readCursor(HISTORY_CURSOR, cursor),
    });
    return pageResponse(c, { history }, HISTORY_CURSOR, next);
  },
);
