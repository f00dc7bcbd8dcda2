import { and, eq, lt, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { AuditContext } from "../../shared/actor.ts";
import { historyId } from "../../shared/history.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { pendingEventIds, pendingEventRows } from "../../shared/pending-events.ts";
import { application, type EventState, history, webhookEvent } from "../../shared/schema.ts";
import { AFTER_ALL_IDS, SCANNED, scanLimit, scanPage, scanStatements } from "./bounded-scan.ts";
import type { Database } from "./database.ts";
import { byShape, columnName, orm, type Placeholders, query, type RowOfStatement, statement } from "./statement.ts";

/** Events for an application's server (contract section 19). */

const SELECT_ENDPOINT = statement((p: Placeholders<{ applicationId: ApplicationId }>) =>
  orm
    .select({
      webhookUrl: application.webhookUrl,
      heldAt: application.webhookHeldAt,
    })
    .from(application)
    .where(eq(application.id, p.applicationId)),
);

/** Conditions for an application's pending events to be sent. */
export type EndpointState = RowOfStatement<typeof SELECT_ENDPOINT>;

const scanned = alias(webhookEvent, SCANNED);

interface EventShape extends Record<string, string | boolean | null> {
  state: EventState | null;
  areFewPending: boolean;
}

const PAGES = byShape(({ state, areFewPending }: EventShape) => {
  const isStopped = state === "exhausted" || state === "held";
  return scanStatements((p: Placeholders<{ applicationId: ApplicationId; after: string }>) => ({
    table: isStopped ? sql`${webhookEvent} INDEXED BY webhook_event_stopped` : webhookEvent,
    ranges: [
      and(
        eq(webhookEvent.applicationId, p.applicationId),
        // The second condition repeats the index's.
        isStopped
          ? sql`${webhookEvent.state} = ${state} AND ${webhookEvent.state} IN ('exhausted', 'held')`
          : undefined,
        areFewPending ? sql`${webhookEvent.id} IN (${pendingEventIds(p.applicationId)})` : undefined,
        lt(webhookEvent.id, p.after),
      ),
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
      /** Time of the next attempt. While an attempt runs, the time at which the event is due again if its result is lost. */
      dueAt: sql<number>`max(coalesce(${scanned.dueAt}, 0), ${scanned.leaseUntil})`,
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
 * An application's events, newest first, and their endpoint. Two round trips, or three for pending events.
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
  const values = { applicationId, after: after ?? AFTER_ALL_IDS };
  const events = await scanPage(db, PAGES({ state, areFewPending }), values, perPage, limit);
  const [endpoint] = await db.all(SELECT_ENDPOINT, { applicationId });
  return { ...events, endpoint };
}

/**
 * No index has pending events by ID. If there are few, all are read and sorted. If there are many, all events are
 * scanned, newest first.
 */
const COUNT_PENDING = statement((p: Placeholders<{ applicationId: ApplicationId; limit: number }>) =>
  query({ rows: pendingEventRows(p.applicationId, p.limit) }, (fields) => sql`SELECT ${fields}`),
);

/** The number of rows that have to be read to find all of an application's pending events, counted up to twice the limit. */
async function countPending(db: Database, applicationId: ApplicationId, limit: number): Promise<number> {
  const [row] = await db.all(COUNT_PENDING, { applicationId, limit });
  return row?.rows ?? 0;
}

interface ReplayValues {
  applicationId: ApplicationId;
  eventId: string;
  /** ID of the history row. */
  historyId: string;
  at: number;
  actorKind: AuditContext["actor"]["kind"];
  actorName: string | null;
  requestId: string | null;
}

/** `due_at` -1 sorts it before all other events of its application, because somebody is waiting for it. */
const REPLAY = statement((p: Placeholders<Pick<ReplayValues, "applicationId" | "eventId">>) => {
  const { state, attempts, dueAt, leaseUntil, deliveredAt } = webhookEvent;
  const isReady = sql`(SELECT ${application.webhookUrl} IS NOT NULL AND ${application.webhookHeldAt} IS NULL
    FROM ${application} WHERE ${application.id} = ${p.applicationId})`;
  return query(
    { state: sql<"pending" | "held">`${state}` },
    (fields) => sql`UPDATE ${webhookEvent} SET ${columnName(state)} = iif(${isReady}, 'pending', 'held'),
        ${columnName(attempts)} = 0, ${columnName(dueAt)} = -1, ${columnName(leaseUntil)} = 0, ${columnName(deliveredAt)} = NULL
      WHERE ${isEvent(p)} RETURNING ${fields}`,
  );
});

/** Runs in the same transaction, before the change. */
const NOTE_REPLAY = statement((p: Placeholders<ReplayValues>) => {
  const { applicationId, id, at, action, actorKind, actorName, requestId, detail } = history;
  const columns = [applicationId, id, at, action, actorKind, actorName, requestId, detail].map(columnName);
  return sql`INSERT INTO ${history} (${sql.join(columns, sql`, `)})
    SELECT ${p.applicationId}, ${p.historyId}, ${p.at}, 'event:replayed', ${p.actorKind}, ${p.actorName}, ${p.requestId},
      json_object('eventId', ${p.eventId})
    WHERE EXISTS (SELECT 1 FROM ${webhookEvent} WHERE ${isEvent(p)}) ON CONFLICT DO NOTHING`;
});

const isEvent = (p: Pick<Placeholders<ReplayValues>, "applicationId" | "eventId">): SQL | undefined =>
  and(eq(webhookEvent.applicationId, p.applicationId), eq(webhookEvent.id, p.eventId));

/**
 * Makes an event of any state due at once, with all its attempts. It is held if the application has no endpoint or a
 * held one. It does not wait for a running attempt, so the receiver may get the event twice. One round trip.
 *
 * @param audit who replays it, for the history
 * @param now milliseconds
 * @returns the event's new state; undefined if the application has no such event
 */
export async function replayEvent(
  db: Database,
  applicationId: ApplicationId,
  eventId: string,
  { actor, requestId = null }: AuditContext,
  now: number,
): Promise<"pending" | "held" | undefined> {
  const event = { applicationId, eventId };
  const note = { historyId: historyId(now), at: now, actorKind: actor.kind, actorName: actor.name ?? null, requestId };
  const [, replayed] = await db.run((d1) =>
    d1.batch([NOTE_REPLAY.bind(d1, { ...event, ...note }), REPLAY.bind(d1, event)]),
  );
  return REPLAY.rows(replayed)[0]?.state;
}
