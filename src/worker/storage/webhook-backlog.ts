import { and, eq, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { eventIdPrefix, eventIdTime } from "../../shared/identifiers.ts";
import { application, heartbeat, webhookEvent } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { isOfReadable } from "./readable.ts";
import { columnName, orm, type Placeholders, query, statement } from "./statement.ts";
import type { EventId } from "./webhook-events.ts";

/**
 * The sweep's queries of the outbox. They take a limited number of each application's events, so that one receiver's backlog does
 * not delay the others' events (contract section 8). An application without events costs one index lookup.
 */

const event = alias(webhookEvent, "event");
const own = alias(webhookEvent, "own");

const SELECT_DUE = statement((p: Placeholders<{ now: number; perApplication: number; limit: number }>) => {
  const due = sql`SELECT ${own.id} FROM ${webhookEvent} AS ${own}
    WHERE ${own.applicationId} = ${application.id} AND ${own.state} = 'pending' AND ${own.dueAt} <= ${p.now}
      AND ${own.leaseUntil} <= ${p.now}
    ORDER BY ${own.dueAt}, ${own.id} LIMIT ${p.perApplication}`;
  // `rank`: an event's position among those of its application.
  const ranked = sql`SELECT ${event.applicationId}, ${event.id}, ${event.dueAt},
      row_number() OVER (PARTITION BY ${event.applicationId} ORDER BY ${event.dueAt}, ${event.id}) AS rank
    FROM ${application} CROSS JOIN ${webhookEvent} AS ${event}
    WHERE ${application.disabledAt} IS NULL AND ${event.applicationId} = ${application.id} AND ${event.id} IN (${due})
      AND ${isOfReadable(event.applicationId)}`;
  return query(
    { applicationId: event.applicationId, eventId: event.id },
    (fields) => sql`SELECT ${fields} FROM (${ranked}) AS ${event} ORDER BY rank, ${event.dueAt} LIMIT ${p.limit}`,
  );
});

/**
 * Due events whose message may have been lost, or was too far ahead for the queue. Applications take turns. Each one's
 * events come in the order of their due times, and events with the same due time by age. Events of
 * applications that are disabled, or of which D1 lacks changes, are left out. One round trip.
 *
 * @param now milliseconds
 */
export const findDueEvents = (
  db: Database,
  values: { now: number; perApplication: number; limit: number },
): Promise<EventId[]> => db.all(SELECT_DUE, values);

/**
 * The second condition on the state repeats that of the index `webhook_event_stopped`. Without it SQLite reads every
 * event of the application. `due_at` becomes 0, as for events that were never tried, so that they are sent in the order
 * in which they were made.
 */
const RELEASE_HELD = statement((p: Placeholders<{ perApplication: number }>) => {
  const held = sql`SELECT ${own.id} FROM ${webhookEvent} AS ${own}
    WHERE ${own.applicationId} = ${application.id} AND ${own.state} = 'held' AND ${own.state} IN ('exhausted', 'held')
    ORDER BY ${own.id} LIMIT ${p.perApplication}`;
  return sql`UPDATE ${webhookEvent} SET ${columnName(own.state)} = 'pending', ${columnName(own.attempts)} = 0, ${columnName(own.dueAt)} = 0
    WHERE (${columnName(own.applicationId)}, ${columnName(own.id)}) IN (
      SELECT ${event.applicationId}, ${event.id} FROM ${application} CROSS JOIN ${webhookEvent} AS ${event}
      WHERE ${application.webhookHeldAt} IS NULL AND ${application.webhookUrl} IS NOT NULL
        AND ${application.disabledAt} IS NULL AND ${event.applicationId} = ${application.id} AND ${event.id} IN (${held}))`;
});

/**
 * Makes held events due again once their endpoint is released, oldest first. One round trip.
 *
 * @param perApplication maximum number of events of one application
 * @returns the number of events that became due
 */
export const releaseHeldEvents = (db: Database, perApplication: number): Promise<number> =>
  db.write(RELEASE_HELD, { perApplication });

interface UntriedValues {
  /** Prefixes of IDs; `until` is exclusive. */
  from: string;
  until: string;
  limit: number;
}

/** Includes events of disabled applications, so that enabling needs no further work. */
const GIVE_DUE_TIMES = statement(
  (p: Placeholders<UntriedValues>) =>
    sql`UPDATE ${webhookEvent} SET ${columnName(own.dueAt)} = 0
      WHERE (${columnName(own.applicationId)}, ${columnName(own.id)}) IN (
        SELECT ${event.applicationId}, ${event.id} FROM ${application} CROSS JOIN ${webhookEvent} AS ${event}
        WHERE ${event.applicationId} = ${application.id} AND ${event.id} >= ${p.from} AND ${event.id} < ${p.until}
          AND ${event.state} = 'pending' AND ${event.dueAt} IS NULL LIMIT ${p.limit})`,
);

const SELECT_UNTRIED_FROM = statement((_: Placeholders<Record<never, never>>) =>
  orm.select({ untriedFrom: heartbeat.untriedFrom }).from(heartbeat).where(eq(heartbeat.id, 1)),
);

/** The checkpoint of the search for untried events: every pending event with a lower ID has a due time. One round trip. */
export async function readUntriedFrom(db: Database): Promise<string> {
  const [row] = await db.all(SELECT_UNTRIED_FROM, {});
  return row?.untriedFrom ?? "";
}

/** Follows `GIVE_DUE_TIMES` in its batch: the checkpoint stays if there may be more events, or if it has changed since it was read. */
const MOVE_UNTRIED_FROM = statement((p: Placeholders<{ before: string; untriedFrom: string; limit: number }>) =>
  orm
    .update(heartbeat)
    .set({ untriedFrom: sql`${p.untriedFrom}` })
    .where(and(eq(heartbeat.id, 1), eq(heartbeat.untriedFrom, p.before), sql`changes() < ${p.limit}`)),
);

/**
 * Makes pending events without a due time due at once and, unless there may be more, moves the checkpoint. Both happen in one
 * batch: if D1 was restored between them, the checkpoint would pass events that have no due time again. One round trip.
 *
 * @param between the events' creation in milliseconds: from the first time on, before the second
 * @param checkpoint as it was read, and the time in milliseconds that it is moved to. It stays if D1 was restored since, or
 *   another sweep moved it
 * @returns their number; if it is `limit`, there may be more
 */
export function giveDueTimes(
  db: Database,
  [from, until]: readonly [number, number],
  checkpoint: { before: string; moment: number },
  limit: number,
): Promise<number> {
  const events = { from: eventIdPrefix(from), until: eventIdPrefix(until), limit };
  const { before, moment } = checkpoint;
  return db.run(async (d1) => {
    const [given] = await d1.batch([
      GIVE_DUE_TIMES.bind(d1, events),
      MOVE_UNTRIED_FROM.bind(d1, { before, untriedFrom: eventIdPrefix(moment), limit }),
    ]);
    return given?.meta.changes ?? 0;
  });
}

const SELECT_NEXT = statement((p: Placeholders<{ from: string }>) =>
  query(
    { id: sql<string | null>`min(next)` },
    (fields) => sql`SELECT ${fields} FROM (
      SELECT (SELECT min(${own.id}) FROM ${webhookEvent} AS ${own}
        WHERE ${own.applicationId} = ${application.id} AND ${own.id} >= ${p.from}) AS next FROM ${application})`,
  ),
);

/** Creation of the first event from this time on, in milliseconds; null if there is none. One round trip. */
export async function findNextEvent(db: Database, from: number): Promise<number | null> {
  const [row] = await db.all(SELECT_NEXT, { from: eventIdPrefix(from) });
  return row?.id == null ? null : eventIdTime(row.id);
}
