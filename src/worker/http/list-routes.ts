import { Hono, type Context as HonoContext } from "hono";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { badgePageQuery, pageQuery, userPageQuery } from "../../shared/requests.ts";
import { ApiError } from "../api-error.ts";
import type { Application } from "../applications/application-cache.ts";
import { BADGE_CURSOR, NEWEST_BADGE_CURSOR, pageBadges } from "../badges/list.ts";
import type { CursorCodec } from "../cursor.ts";
import { BLOCKED_USER_CURSOR, pageBlockedUsers } from "../users/list.ts";
import { requireServer } from "./authentication.ts";
import type { HttpEnv } from "./environment.ts";
import { readCursor, readQuery, readTime } from "./queries.ts";
import { jsonResponse } from "./response.ts";

/** Checks credentials first, so that validation errors reveal nothing to strangers. */
export const authenticateServer = async (c: HonoContext<HttpEnv>, next: () => Promise<void>) => {
  await requireServer(c);
  await next();
};

/** Like `authenticateServer`, for data that only the server and operators may read (contract section 19). */
export const authenticateOperator = async (c: HonoContext<HttpEnv>, next: () => Promise<void>) => {
  await requireServer(c, "change");
  await next();
};

/** The ID of the application that `authenticateServer` has authenticated. */
export function authenticatedApplicationId(c: HonoContext<HttpEnv>): ApplicationId {
  const applicationId = c.get("application");
  if (applicationId === undefined) throw new ApiError("INVALID_CREDENTIALS");
  return applicationId;
}

/** That application, with its settings. */
export function requireCaller(c: HonoContext<HttpEnv>): Application {
  const application = c.get("caller");
  if (application === undefined) throw new ApiError("INVALID_CREDENTIALS");
  return application;
}

/**
 * A page of a list; it has a cursor if more follow. @param next the position after which the next page starts, or null
 */
export function pageResponse<Position>(
  c: HonoContext<HttpEnv>,
  body: object,
  codec: CursorCodec<Position>,
  next: Position | null,
): Response {
  const response = jsonResponse(c, body);
  if (next !== null) response.headers.set("pagination-cursor", codec.encode(next));
  return response;
}

/** Routes with which an application's server lists its badges and users (contract sections 4 and 24). */
export const listRoutes = new Hono<HttpEnv>()
  .get("/v1/badges", authenticateServer, readQuery(badgePageQuery), async (c) => {
    const { per_page: perPage, cursor, state = null, q: text = null, endsBefore, order } = c.req.valid("query");
    const isNewestFirst = order === "newest";
    const codec = isNewestFirst ? NEWEST_BADGE_CURSOR : BADGE_CURSOR;
    const query = {
      applicationId: authenticatedApplicationId(c),
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
      applicationId: authenticatedApplicationId(c),
      userId: c.req.param("id"),
      ...{ state: null, text: null, endsBefore: null, isNewestFirst: false, perPage },
      after: readCursor(BADGE_CURSOR, cursor),
    });
    return pageResponse(c, { badges }, BADGE_CURSOR, next);
  })

  .get("/v1/users", authenticateServer, readQuery(userPageQuery), async (c) => {
    const { per_page: perPage, cursor } = c.req.valid("query");
    const page = { after: readCursor(BLOCKED_USER_CURSOR, cursor), perPage };
    const { users, next } = await pageBlockedUsers(c.get("context"), authenticatedApplicationId(c), page);
    return pageResponse(c, { users }, BLOCKED_USER_CURSOR, next);
  });
