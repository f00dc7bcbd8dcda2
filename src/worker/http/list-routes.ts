import { Hono } from "hono";
import { badgePageQuery, pageQuery, userPageQuery } from "../../shared/requests.ts";
import { BADGE_CURSOR, NEWEST_BADGE_CURSOR, pageBadges } from "../badges/list.ts";
import { BLOCKED_USER_CURSOR, pageBlockedUsers } from "../users/list.ts";
import type { HttpEnv } from "./environment.ts";
import { authenticateServer } from "./middleware.ts";
import { readCursor, readQuery, readTime } from "./queries.ts";
import { pageResponse } from "./response.ts";

/** Routes with which an application's server lists its badges and blocked users. */
export const listRoutes = new Hono<HttpEnv>()
  .get("/v1/badges", authenticateServer, readQuery(badgePageQuery), async (c) => {
    const { per_page: perPage, cursor, state = null, q: text = null, endsBefore, order } = c.req.valid("query");
    const isNewestFirst = order === "newest";
    const codec = isNewestFirst ? NEWEST_BADGE_CURSOR : BADGE_CURSOR;
    const query = {
      applicationId: c.get("caller").id,
      userId: null,
      ...{ state, text, isNewestFirst, perPage },
      endsBefore: readTime(endsBefore),
      after: readCursor(codec, cursor),
    };
    const { badges, next } = await pageBadges(c.get("context"), query, c.get("consoleUser") !== undefined);
    return pageResponse(c, { badges }, codec, next);
  })

  .get("/v1/users/:id/badges", authenticateServer, readQuery(pageQuery), async (c) => {
    const { per_page: perPage, cursor } = c.req.valid("query");
    const { badges, next } = await pageBadges(c.get("context"), {
      applicationId: c.get("caller").id,
      userId: c.req.param("id"),
      ...{ state: null, text: null, endsBefore: null, isNewestFirst: false, perPage },
      after: readCursor(BADGE_CURSOR, cursor),
    });
    return pageResponse(c, { badges }, BADGE_CURSOR, next);
  })

  .get("/v1/users", authenticateServer, readQuery(userPageQuery), async (c) => {
    const { per_page: perPage, cursor } = c.req.valid("query");
    const page = { after: readCursor(BLOCKED_USER_CURSOR, cursor), perPage };
    const { users, next } = await pageBlockedUsers(c.get("context"), c.get("caller").id, page);
    return pageResponse(c, { users }, BLOCKED_USER_CURSOR, next);
  });
