import { Hono, type Context as HonoContext } from "hono";
import { badgeTimesRequest, pageQuery, reasonRequest } from "../../shared/requests.ts";
import type { Transition } from "../allocator/decide/next-state.ts";
import { ApiError } from "../api-error.ts";
import { FEED_CURSOR, pageChanges } from "../badges/changes.ts";
import { changeBadge, showBadge } from "../badges/transitions.ts";
import { auditContext, badgeResponse, readIfMatch, readReason } from "./audit-and-etag.ts";
import { type FieldErrors, parseBody, readWholeBody } from "./body.ts";
import { limitBody } from "./body-limit.ts";
import type { HttpEnv } from "./environment.ts";
import { authenticateServer } from "./middleware.ts";
import { requireBadgeNumber } from "./params.ts";
import { readCursor, readQuery } from "./queries.ts";
import { jsonResponse } from "./response.ts";

const TIME_FIELDS: FieldErrors = {
  expiresAt: { invalid: "INVALID_EXPIRESAT" },
  startsAt: { invalid: "INVALID_STARTSAT" },
};

/** Routes with which an application's server follows and ends badges. */
export const badgeLifecycleRoutes = new Hono<HttpEnv>()
  .get("/v1/badges/:id", authenticateServer, async (c) => {
    const number = requireBadgeNumber(c.req.param("id"));
    return badgeResponse(c, await showBadge(c.get("context"), c.get("caller").id, number));
  })
  .patch("/v1/badges/:id", limitBody, authenticateServer, async (c) => {
    const { transition, reason } = await readTimes(c);
    return applyTransition(c, transition, reason);
  })

  .patch("/v1/badges/:id/suspend", limitBody, authenticateServer, (c) => transitionOfBody(c, { kind: "suspend" }))
  .patch("/v1/badges/:id/resume", limitBody, authenticateServer, (c) => transitionOfBody(c, { kind: "resume" }))
  .patch("/v1/badges/:id/revoke", limitBody, authenticateServer, (c) => transitionOfBody(c, { kind: "revoke" }))
  .patch("/v1/badges/:id/rebind", limitBody, authenticateServer, (c) => transitionOfBody(c, { kind: "rebind" }))

  .get("/v1/changes", authenticateServer, readQuery(pageQuery), async (c) => {
    const { cursor, per_page: perPage } = c.req.valid("query");
    const after = readCursor(FEED_CURSOR, cursor);
    const page = await pageChanges(c.get("context"), c.get("caller").id, after, perPage);
    const response = jsonResponse(c, { changes: page.changes, more: page.more });
    response.headers.set("pagination-cursor", page.cursor);
    return response;
  });

async function transitionOfBody(c: HonoContext<HttpEnv>, transition: Transition): Promise<Response> {
  return applyTransition(c, transition, await readReason(c));
}

async function applyTransition(
  c: HonoContext<HttpEnv>,
  transition: Transition,
  reason: string | null,
): Promise<Response> {
  const number = requireBadgeNumber(c.req.param("id"));
  const change = { number, transition, ifChange: readIfMatch(c), ownedBy: null };
  return badgeResponse(c, await changeBadge(c.get("context"), c.get("caller").id, change, auditContext(c, reason)));
}

/** Unlike in other calls, null is a value here: no end for `expiresAt`, the badge's issue for `startsAt`. */
async function readTimes(c: HonoContext<HttpEnv>): Promise<{ transition: Transition; reason: string | null }> {
  const body = await readWholeBody(c);
  for (const name of ["expiresAt", "startsAt", "reason"]) {
    const value = body[name];
    const isMissing = (typeof value === "string" && value.trim() === "") || (name === "reason" && value === null);
    if (isMissing) delete body[name];
  }
  const { reason = null } = parseBody(reasonRequest, body, {});
  if (body.expiresAt === undefined && body.startsAt === undefined) throw new ApiError("UNDEFINED_EXPIRESAT");
  const { expiresAt, startsAt } = parseBody(badgeTimesRequest, body, TIME_FIELDS);
  const transition = {
    kind: "reschedule" as const,
    ...(expiresAt !== undefined && { expiresAt: toTime(expiresAt) }),
    ...(startsAt !== undefined && { startsAt: toTime(startsAt) }),
  };
  return { transition, reason };
}

const toTime = (text: string | null): number | null => (text === null ? null : Date.parse(text));
