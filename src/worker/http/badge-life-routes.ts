import { Hono, type Context as HonoContext } from "hono";
import { blockUser, showUser, unblockUser } from "../../shared/badge-life/blocks.ts";
import type { Step } from "../../shared/badge-life/states.ts";
import type { BadgeView } from "../../shared/badge-life/view.ts";
import { badgeEndRequest, pageQuery, userId as userIdSchema } from "../../shared/requests.ts";
import type { User } from "../../shared/storage/blocked-users.ts";
import { FEED_CURSOR, pageChanges } from "../badges/changes.ts";
import { badgeStore, changeBadge, rebindBadge, showBadge } from "../badges/transitions.ts";
import { Refusal } from "../refusal.ts";
import { requireBadgeNumber } from "./badge-routes.ts";
import { type FieldErrors, parseBody, readWholeBody } from "./body.ts";
import type { HttpEnv } from "./environment.ts";
import { authenticatedApplication, authenticateServer } from "./list-routes.ts";
import { readCursor, readQuery } from "./queries.ts";
import { limitBody } from "./request-stream.ts";
import { jsonResponse, methodNotAllowed } from "./response.ts";

const END_FIELDS: FieldErrors = { expiresAt: { invalid: "INVALID_EXPIRESAT" } };

/** Routes with which an application's server follows and ends badges (contract sections 12 and 13). */
export const badgeLifeRoutes = new Hono<HttpEnv>()
  .get("/v1/badges/:id", authenticateServer, async (c) => {
    const number = requireBadgeNumber(c.req.param("id"));
    const { badge, change } = await showBadge(c.get("context"), authenticatedApplication(c), number);
    return badgeResponse(c, badge, change);
  })
  .patch("/v1/badges/:id", limitBody, authenticateServer, async (c) => takeStep(c, await readEnd(c)))
  .all("/v1/badges/:id", methodNotAllowed("GET", "HEAD", "PATCH"))

  .patch("/v1/badges/:id/suspend", limitBody, authenticateServer, (c) => takeStep(c, { kind: "suspend" }))
  .all("/v1/badges/:id/suspend", methodNotAllowed("PATCH"))
  .patch("/v1/badges/:id/resume", limitBody, authenticateServer, (c) => takeStep(c, { kind: "resume" }))
  .all("/v1/badges/:id/resume", methodNotAllowed("PATCH"))
  .patch("/v1/badges/:id/revoke", limitBody, authenticateServer, (c) => takeStep(c, { kind: "revoke" }))
  .all("/v1/badges/:id/revoke", methodNotAllowed("PATCH"))

  .patch("/v1/badges/:id/rebind", limitBody, authenticateServer, async (c) => {
    const number = requireBadgeNumber(c.req.param("id"));
    return jsonResponse(c, await rebindBadge(c.get("context"), authenticatedApplication(c), number));
  })
  .all("/v1/badges/:id/rebind", methodNotAllowed("PATCH"))

  .get("/v1/users/:id", authenticateServer, async (c) =>
    jsonResponse(c, await showUser(c.get("context").db, userOf(c, c.req.param("id") ?? ""))),
  )
  .all("/v1/users/:id", methodNotAllowed("GET", "HEAD"))
  .patch("/v1/users/:id/block", limitBody, authenticateServer, async (c) =>
    jsonResponse(c, await blockUser(badgeStore(c.get("context")), userOf(c, requireUserId(c.req.param("id"))))),
  )
  .all("/v1/users/:id/block", methodNotAllowed("PATCH"))
  .patch("/v1/users/:id/unblock", limitBody, authenticateServer, async (c) =>
    jsonResponse(c, await unblockUser(c.get("context").db, userOf(c, requireUserId(c.req.param("id"))))),
  )
  .all("/v1/users/:id/unblock", methodNotAllowed("PATCH"))

  .get("/v1/changes", authenticateServer, readQuery(pageQuery), async (c) => {
    const { cursor, per_page: perPage } = c.req.valid("query");
    const after = readCursor(FEED_CURSOR, cursor);
    const page = await pageChanges(c.get("context"), authenticatedApplication(c), after, perPage);
    const response = jsonResponse(c, { changes: page.changes, more: page.more });
    response.headers.set("pagination-cursor", page.cursor);
    return response;
  })
  .all("/v1/changes", methodNotAllowed("GET", "HEAD"));

/** @param change the badge's change number, which a later call sends as `If-Match` (contract section 24) */
export function badgeResponse(c: HonoContext<HttpEnv>, badge: BadgeView, change: number): Response {
  const response = jsonResponse(c, badge);
  response.headers.set("ETag", `"${change}"`);
  return response;
}

async function takeStep(c: HonoContext<HttpEnv>, step: Step): Promise<Response> {
  const number = requireBadgeNumber(c.req.param("id"));
  return jsonResponse(c, await changeBadge(c.get("context"), authenticatedApplication(c), number, step));
}

/** Unlike in other calls, `null` is a value: the badge has no end. */
async function readEnd(c: HonoContext<HttpEnv>): Promise<Step> {
  const body = await readWholeBody(c);
  const isMissing =
    body.expiresAt === undefined || (typeof body.expiresAt === "string" && body.expiresAt.trim() === "");
  if (isMissing) throw new Refusal("UNDEFINED_EXPIRESAT");
  const { expiresAt } = parseBody(badgeEndRequest, body, END_FIELDS);
  return { kind: "set-end", expiresAt: expiresAt === null ? null : Date.parse(expiresAt) };
}

const userOf = (c: HonoContext<HttpEnv>, userId: string): User => ({
  applicationId: authenticatedApplication(c),
  userId,
});

function requireUserId(id: string | undefined): string {
  const parsed = userIdSchema.safeParse(id);
  if (!parsed.success) throw new Refusal("INVALID_USERID");
  return parsed.data;
}
