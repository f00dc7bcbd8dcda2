import { Hono, type Context as HonoContext } from "hono";
import { EVENT_STATES, INVITATION_STATES } from "../../shared/schema.ts";
import { readStatistics } from "../applications/statistics.ts";
import { pageInvitations } from "../invitations/list.ts";
import { Refusal } from "../refusal.ts";
import { findSettings } from "../storage/settings.ts";
import { pageEvents, replay } from "../webhooks/deliveries.ts";
import type { HttpEnv } from "./environment.ts";
import { authenticatedApplication, authenticateServer, readPageQuery } from "./list-routes.ts";
import {
  decodeEventCursor,
  decodeInvitationCursor,
  encodeEventCursor,
  encodeInvitationCursor,
} from "./overview-cursors.ts";
import { limitBody } from "./request-stream.ts";
import { jsonResponse, methodNotAllowed } from "./response.ts";

/** Routes that show a company its settings, invitations, events and counts, also in the console (contract section 19). */
export const overviewRoutes = new Hono<HttpEnv>()
  .get("/v1/application", authenticateServer, async (c) => {
    const settings = await findSettings(c.get("context").db, authenticatedApplication(c));
    if (!settings) throw new Refusal("INVALID_CREDENTIALS");
    const { reuseAfterSeconds: _reuseAfterSeconds, invitationLink, ...shown } = settings;
    const signedIn = c.get("person");
    return jsonResponse(c, {
      ...shown,
      ...(invitationLink !== null && { invitationLink }),
      ...(signedIn && { signedIn }),
    });
  })
  .all("/v1/application", methodNotAllowed("GET", "HEAD"))

  .get("/v1/invitations", authenticateServer, readPageQuery, async (c) => {
    const { per_page: perPage, cursor } = c.req.valid("query");
    const before = readCursor(cursor, decodeInvitationCursor);
    const page = { state: readState(c, INVITATION_STATES), before, perPage };
    const { invitations, next } = await pageInvitations(c.get("context"), authenticatedApplication(c), page);
    const response = jsonResponse(c, { invitations });
    if (next !== null) response.headers.set("pagination-cursor", encodeInvitationCursor(next));
    return response;
  })
  .all("/v1/invitations", methodNotAllowed("GET", "HEAD"))

  .get("/v1/events", authenticateServer, readPageQuery, async (c) => {
    const { per_page: perPage, cursor } = c.req.valid("query");
    const before = readCursor(cursor, decodeEventCursor);
    const page = { state: readState(c, EVENT_STATES), before, perPage };
    const { events, next } = await pageEvents(c.get("context"), authenticatedApplication(c), page);
    const response = jsonResponse(c, { events });
    if (next !== null) response.headers.set("pagination-cursor", encodeEventCursor(next));
    return response;
  })
  .all("/v1/events", methodNotAllowed("GET", "HEAD"))

  .post("/v1/events/:id/replay", limitBody, authenticateServer, async (c) =>
    jsonResponse(c, await replay(c.get("context"), authenticatedApplication(c), c.req.param("id") ?? ""), 202),
  )
  .all("/v1/events/:id/replay", methodNotAllowed("POST"))

  .get("/v1/stats", authenticateServer, async (c) =>
    jsonResponse(c, await readStatistics(c.get("context"), authenticatedApplication(c))),
  )
  .all("/v1/stats", methodNotAllowed("GET", "HEAD"));

function readCursor<Position>(
  cursor: string | undefined,
  decode: (cursor: string) => Position | null,
): Position | null {
  if (cursor === undefined) return null;
  const position = decode(cursor);
  if (position === null) throw new Refusal("INVALID_CURSOR");
  return position;
}

/** @returns null if the request names no state */
function readState<State extends string>(c: HonoContext<HttpEnv>, states: readonly State[]): State | null {
  const asked = c.req.queries("state");
  if (asked === undefined) return null;
  const state = asked.length === 1 ? states.find((each) => each === asked[0]) : undefined;
  if (state === undefined) throw new Refusal("INVALID_STATE");
  return state;
}
