import { and, eq, lt, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import * as z from "zod";
import type { Origin } from "../../shared/actor.ts";
import { historyId } from "../../shared/history.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { type EventState, webhookEvent } from "../../shared/schema.ts";
import { SCANNED, scanLimit, scanPage, scanStatements } from "./bounded-scan.ts";
import type { Database } from "./database.ts";
import { byShape, type Placeholders } from "./statement.ts";

/** Events as an application's server sees them (contract section 19). */

/** Conditions for an application's pending events to be sent. */
const endpointState = z.object({
  webhookUrl: z.string().nullable(),
  heldAt: z.number().nullable(),
  disabledAt: z.number().nullable(),
});
export type EndpointState = z.infer<typeof endpointState>;

const SELECT_ENDPOINT = `
  SELECT webhook_url AS webhookUrl, webhook_held_at AS heldAt, disabled_at AS disabledAt FROM application WHERE id = ?1`;

const scanned = alias(webhookEvent, SCANNED);

interface EventShape extends Record<string, string | boolean | null> {
  state: EventState | null;
  isFirst: boolean;
  areFewPending: boolean;
}

const PAGES = byShape(({ state, isFirst, areFewPending }: EventShape) => {
  const { index, range } = rangeOf(state, areFewPending);
  return scanStatements((p: Placeholders<{ applicationId: ApplicationId; after: string | null }>) => ({
    table: sql`${webhookEvent}${index}`,
    ranges: [
      and(eq(webhookEvent.applicationId, p.applicationId), range, isFirst ? undefined : lt(webhookEvent.id, p.after)),
    ],
    order: sql`${sql.identifier(webhookEvent.id.name)} DESC`,
    // Delivered events have no index: most events are delivered.
    conditions: [
      state === "delivered" || (state === "pending" && !areFewPending) ? eq(scanned.state, state) : undefined,
    ],
    fields: {
      id: scanned.id,
      event: scanned.event,
      payload: scanned.payload,
      state: scanned.state,
      attempts: scanned.attempts,
      /** When the next attempt is due, or if one is running, when it would be repeated should its result not come. */
      dueAt: sql<number>`max(${scanned.dueAt}, ${scanned.leaseUntil})`,
      lastStatus: scanned.lastStatus,
      lastOutcome: scanned.lastOutcome,
      lastResponse: scanned.lastResponse,
      createdAt: scanned.createdAt,
      deliveredAt: scanned.deliveredAt,
    },
  }));
});

/** Times are milliseconds. */
export type EventRow = Awaited<ReturnType<typeof listEvents>>["items"][number];

/**
 * An application's events, newest first, and the endpoint they go to. Two round trips, or three of pending events.
 *
 * @param page `after`: the last event of the previous page
 */
export async function listEvents(
  db: Database,
  applicationId: ApplicationId,
  page: { state: EventState | null; after: string | null; perPage: number },
) {
  const { state, after, perPage } = page;
  const limit = Math.floor(scanLimit(perPage) / 2);
  const areFewPending = state === "pending" && (await countPending(db, applicationId, limit)) < limit;
  const pages = PAGES({ state, isFirst: after === null, areFewPending });
  const events = await scanPage(db, pages, { applicationId, after }, perPage, limit);
  const [endpoint] = await db.rows(endpointState, SELECT_ENDPOINT, [applicationId]);
  return { ...events, endpoint };
}

/**
 * The index of pending events orders them by due time. So a few are all read and put into order; of many, the newest events have enough.
 */
function rangeOf(state: EventState | null, areFewPending: boolean): { index: SQL; range: SQL | undefined } {
  if (areFewPending) return { index: sql` INDEXED BY webhook_event_due`, range: eq(webhookEvent.state, "pending") };
  if (state === "exhausted" || state === "held") {
    // The second condition is that of the index.
    const range = sql`${webhookEvent.state} = ${state} AND ${webhookEvent.state} IN ('exhausted', 'held')`;
    return { index: sql` INDEXED BY webhook_event_stopped`, range };
  }
  return { index: sql``, range: undefined };
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
