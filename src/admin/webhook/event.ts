import { and, eq, type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { application, webhookEvent } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { UserError } from "../command-line/errors.ts";
import { ADMIN } from "../command-line/shell.ts";
import type { Database, Orm } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";

export const noUrl = (applicationId: ApplicationId): UserError =>
  new UserError(
    `Application ${applicationId} has no webhook URL: set one with ${ADMIN} application update ${applicationId} --webhook-url URL.`,
  );

/** How much of a receiver's response is printed for a person. */
export const RESPONSE_CHARACTERS = 200;

export type EventRow = typeof webhookEvent.$inferSelect;

const { id, event, state, attempts, lastStatus, createdAt, deliveredAt } = webhookEvent;
export const LISTED_COLUMNS = { id, event, state, attempts, lastStatus, createdAt, deliveredAt };

/** An event as `webhook list --json` prints it, key by key (contract section 10). */
export function listedEvent(row: Pick<EventRow, keyof typeof LISTED_COLUMNS>) {
  const { id, event, state, attempts, lastStatus, createdAt, deliveredAt } = row;
  return { id, event, state, attempts, lastStatus, createdAt: isoTime(createdAt), deliveredAt: isoTime(deliveredAt) };
}

const EVENT_ID = /^evt_[0-9a-z]{26}$/;

/**
 * Finds an event by its ID alone. The primary key of events starts with the application, so this makes one look-up in
 * it for each application: few reads, however many events there are.
 *
 * @throws UserError when there is no such event
 */
export async function findEvent(database: Database, eventId: string) {
  if (!EVENT_ID.test(eventId)) {
    throw new UserError(
      `"${eventId}" is not an event ID, which looks like evt_…: ${ADMIN} webhook list app_… shows them.`,
    );
  }
  const [found] = await selectEvent(database, eventId);
  if (found === undefined) {
    throw new UserError(`There is no event ${eventId}: ${ADMIN} webhook list app_… shows which there are.`);
  }
  return found;
}

const selectEvent = (database: Database, eventId: string) =>
  database.run((orm) =>
    orm
      .select({ event: webhookEvent, application })
      .from(application)
      .crossJoin(webhookEvent)
      .where(and(eq(webhookEvent.applicationId, application.id), eq(webhookEvent.id, eventId))),
  );

/** The database of the home that has an event; home 1's when none has it. */
export const databaseOfEvent = (homes: Homes, eventId: string): Promise<Database> =>
  homes.find(async (database) => (await selectEvent(database, eventId)).length > 0);

/** `due_at` of events that are due at once; the sweep sends those oldest first. */
const DUE_AT_ONCE = 0;

/** `due_at` of an event that is sent before all others of its application, because an administrator waits for it. */
export const DUE_FIRST = -1;

/**
 * Selects the IDs of an application's stopped events in a state. It names their index, without which SQLite would read all
 * events of the application.
 *
 * @param rest further conditions, order and limit
 */
export const stoppedEventIds = (applicationId: ApplicationId, state: "exhausted" | "held", rest = sql``): SQL =>
  sql`SELECT ${webhookEvent.id} FROM ${webhookEvent} INDEXED BY webhook_event_stopped
    WHERE ${webhookEvent.state} = ${state} AND ${webhookEvent.state} IN ('exhausted', 'held')
    AND ${webhookEvent.applicationId} = ${applicationId} ${rest}`;

/** A test event is never sent again. */
export const REPEATABLE_CONDITION = sql`${webhookEvent.event} <> 'webhook:test'`;

/** Events made due by one statement: it writes their rows and indexes, and D1 runs one statement at a time. */
export const DUE_CHUNK_EVENTS = 500;

/**
 * Makes the oldest stopped events of an application due, `DUE_CHUNK_EVENTS` at most; the sweep sends them oldest first.
 *
 * @param condition must hold too
 */
export function makeDue(orm: Orm, applicationId: ApplicationId, state: "held" | "exhausted", condition: SQL) {
  const oldest = stoppedEventIds(
    applicationId,
    state,
    sql`AND ${REPEATABLE_CONDITION} AND ${condition} ORDER BY ${webhookEvent.id} LIMIT ${DUE_CHUNK_EVENTS}`,
  );
  return orm
    .update(webhookEvent)
    .set({ state: "pending", attempts: 0, dueAt: DUE_AT_ONCE })
    .where(and(eq(webhookEvent.applicationId, applicationId), sql`${webhookEvent.id} IN (${oldest})`));
}
