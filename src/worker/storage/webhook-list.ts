import * as z from "zod";
import type { Origin } from "../../shared/actor.ts";
import { EVENTS } from "../../shared/events.ts";
import { historyId } from "../../shared/history.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { EVENT_STATES, type EventState } from "../../shared/schema.ts";
import { type ScannedPage, scanLimit, scanPage } from "./bounded-scan.ts";
import type { Database } from "./database.ts";

/** Events as an application's server sees them (contract section 19). */

/** Times are milliseconds. */
const eventRow = z.object({
  id: z.string(),
  event: z.enum(EVENTS),
  payload: z.string(),
  state: z.enum(EVENT_STATES),
  attempts: z.number(),
  /** When the next attempt is due, or if one is running, when it would be repeated should its result not come. */
  dueAt: z.number(),
  lastStatus: z.number().nullable(),
  lastOutcome: z.string().nullable(),
  lastResponse: z.string().nullable(),
  createdAt: z.number(),
  deliveredAt: z.number().nullable(),
});
export type EventRow = z.infer<typeof eventRow>;

/** Conditions for an application's pending events to be sent. */
const endpointState = z.object({
  webhookUrl: z.string().nullable(),
  heldAt: z.number().nullable(),
  disabledAt: z.number().nullable(),
});
export type EndpointState = z.infer<typeof endpointState>;

const SELECT_ENDPOINT = `
  SELECT webhook_url AS webhookUrl, webhook_held_at AS heldAt, disabled_at AS disabledAt FROM application WHERE id = ?1`;

const COLUMNS = `
  id, event, payload, state, attempts, max(due_at, lease_until) AS dueAt, last_status AS lastStatus,
  last_outcome AS lastOutcome, last_response AS lastResponse, created_at AS createdAt, delivered_at AS deliveredAt`;

/**
 * An application's events, newest first, and the endpoint they go to. Two round trips, or three of pending events.
 *
 * @param page `after`: the last event of the previous page
 */
export async function listEvents(
  db: Database,
  applicationId: ApplicationId,
  page: { state: EventState | null; after: string | null; perPage: number },
): Promise<ScannedPage<EventRow> & { endpoint: EndpointState | undefined }> {
  const { state, after, perPage } = page;
  const limit = Math.floor(scanLimit(perPage) / 2);
  const areFewPending = state === "pending" && (await countPending(db, applicationId, limit)) < limit;
  const { index, range } = rangeOf(state, areFewPending);
  const events = await scanPage(
    db,
    {
      table: `webhook_event ${index}`,
      ranges: (bind) => {
        const ofApplication = `application_id = ${bind(applicationId)}`;
        return [`${ofApplication} ${range} ${after === null ? "" : `AND id < ${bind(after)}`}`];
      },
      order: "id DESC",
      // Delivered events have no index: most events are delivered.
      conditions: () =>
        state === "delivered" || (state === "pending" && !areFewPending) ? [`state = '${state}'`] : [],
      columns: COLUMNS,
      rows: z.array(eventRow),
      perPage,
    },
    limit,
  );
  const [endpoint] = await db.rows(endpointState, SELECT_ENDPOINT, [applicationId]);
  return { ...events, endpoint };
}

/**
 * The index of pending events orders them by due time. So a few are all read and put into order; of many, the newest events have enough.
 */
function rangeOf(state: EventState | null, areFewPending: boolean): { index: string; range: string } {
  if (areFewPending) return { index: "INDEXED BY webhook_event_due", range: "AND state = 'pending'" };
  if (state === "exhausted" || state === "held") {
    // The second condition is that of the index.
    const range = `AND state = '${state}' AND state IN ('exhausted', 'held')`;
    return { index: "INDEXED BY webhook_event_stopped", range };
  }
  return { index: "", range: "" };
}

const COUNT_PENDING = `
  SELECT count(*) AS pending FROM (SELECT 1 FROM webhook_event INDEXED BY webhook_event_due
    WHERE application_id = ?1 AND state = 'pending' LIMIT ?2)`;

const pendingRow = z.object({ pending: z.number() });

async function countPending(db: Database, applicationId: ApplicationId, limit: number): Promise<number> {
  const [row] = await db.rows(pendingRow, COUNT_PENDING, [applicationId, limit]);
  return pendingRow.parse(row).pending;
}

/** `due_at` -1: before all other events of its application, because somebody is waiting for it. */
const REPLAY = `
  UPDATE webhook_event SET
    state = iif((SELECT webhook_url IS NOT NULL AND webhook_held_at IS NULL FROM application WHERE id = ?1),
      'pending', 'held'),
    attempts = 0, due_at = -1, lease_until = 0, delivered_at = NULL
  WHERE application_id = ?1 AND id = ?2
  RETURNING state`;

/** In the same transaction, and before it. */
const NOTE_REPLAY = `
  INSERT INTO history (application_id, id, at, action, actor_kind, actor_name, request_id, detail)
  SELECT ?1, ?3, ?4, 'event:replayed', ?5, ?6, ?7, json_object('eventId', ?2)
  WHERE EXISTS (SELECT 1 FROM webhook_event WHERE application_id = ?1 AND id = ?2)
  ON CONFLICT DO NOTHING`;

const replayedRows = z.array(z.object({ state: z.enum(["pending", "held"]) }));

/**
 * Makes an event due at once with all its attempts ahead of it, whatever its state; held if the application has no endpoint
 * or a held one. It does not wait for a running attempt, so the receiver may get the event twice.
 *
 * @param origin who replays it, for the history
 * @param now milliseconds
 * @returns the event's new state; undefined if the application has no such event
 */
export async function replayEvent(
  db: Database,
  applicationId: ApplicationId,
  eventId: string,
  { actor, requestId = null }: Origin,
  now: number,
): Promise<"pending" | "held" | undefined> {
  const id = historyId(now);
  const [, replayed] = await db.run((d1) =>
    d1.batch([
      d1.prepare(NOTE_REPLAY).bind(applicationId, eventId, id, now, actor.kind, actor.name ?? null, requestId),
      d1.prepare(REPLAY).bind(applicationId, eventId),
    ]),
  );
  return replayedRows.parse(replayed?.results)[0]?.state;
}
