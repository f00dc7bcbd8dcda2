import { and, desc, eq, type SQL, sql } from "drizzle-orm";
import { application, webhookEvent } from "../../shared/schema.ts";
import { ADMIN, UserError } from "../errors.ts";
import { isoTime } from "../output.ts";
import type { Database } from "../platform/database.ts";
import { type ApplicationRow, findApplication } from "./applications.ts";
import { type EventRow, findEvent } from "./find-event.ts";
import { DUE_FIRST, makeDue } from "./make-due.ts";

export const EVENT_STATES = ["pending", "delivered", "exhausted", "held"] as const;
export type EventState = (typeof EVENT_STATES)[number];

/** An event as `webhook list --json` prints it, key by key (contract section 10). */
export interface ListedEvent {
  id: string;
  event: string;
  state: EventState;
  attempts: number;
  lastStatus: number | null;
  createdAt: string | null;
  deliveredAt: string | null;
}

/** The newest events of an application. */
export async function listEvents(
  database: Database,
  applicationId: string,
  { state, limit }: { state: EventState | undefined; limit: number },
): Promise<ListedEvent[]> {
  await findApplication(database, applicationId);
  // The state stands in the text, so that the index of stopped events serves the question.
  const inState = state && sql`${webhookEvent.state} = ${sql.raw(`'${state}'`)}`;
  const rows = await database.run((orm) =>
    orm
      .select()
      .from(webhookEvent)
      .where(and(eq(webhookEvent.applicationId, applicationId), inState))
      .orderBy(desc(webhookEvent.id))
      .limit(limit),
  );
  return rows.map(listedEvent);
}

export function listedEvent(row: EventRow): ListedEvent {
  const { id, event, state, attempts, lastStatus, createdAt, deliveredAt } = row;
  return { id, event, state, attempts, lastStatus, createdAt: isoTime(createdAt), deliveredAt: isoTime(deliveredAt) };
}

export interface ReplayedEvent {
  id: string;
  applicationId: string;
  /** What it was before. */
  previousState: EventState;
  /** For a pending event, when its next attempt would have been; null when it was due already, and in other states. */
  previousAttemptAt: string | null;
  /** Whether it waits until the application is enabled. */
  disabled: boolean;
}

/**
 * Makes one event due before all others of its application, in whatever state it is, with all its attempts before it. An
 * attempt that is running at this moment is not waited for, so the receiver may get the event twice.
 *
 * @throws UserError when there is no such event or its application takes none
 */
export async function replayEvent(database: Database, eventId: string): Promise<ReplayedEvent> {
  const { event, application: owner } = await findEvent(database, eventId);
  assertTakesEvents(owner);
  const { meta } = await database.run((orm) =>
    orm
      .update(webhookEvent)
      .set({ state: "pending", attempts: 0, dueAt: DUE_FIRST, deliveredAt: null })
      .where(and(eq(webhookEvent.applicationId, owner.id), eq(webhookEvent.id, eventId), takesEvents(owner.id))),
  );
  if (meta.changes === 0) throw new UserError(`Application ${owner.id} changed at this moment: run the command again.`);
  const isWaiting = event.state === "pending" && event.dueAt > Date.now();
  return {
    id: eventId,
    applicationId: owner.id,
    previousState: event.state,
    previousAttemptAt: isWaiting ? isoTime(event.dueAt) : null,
    disabled: owner.disabledAt !== null,
  };
}

/** Makes all exhausted events of an application due again, the oldest first. */
export async function replayExhausted(
  database: Database,
  applicationId: string,
): Promise<{ applicationId: string; replayed: number; disabled: boolean }> {
  const owner = await findApplication(database, applicationId);
  assertTakesEvents(owner);
  const { meta } = await database.run((orm) => makeDue(orm, applicationId, "exhausted", takesEvents(applicationId)));
  return { applicationId, replayed: meta.changes, disabled: owner.disabledAt !== null };
}

const takesEvents = (applicationId: string): SQL =>
  sql`EXISTS (SELECT 1 FROM ${application} WHERE ${application.id} = ${applicationId}
    AND ${application.webhookUrl} IS NOT NULL AND ${application.webhookHeldAt} IS NULL)`;

function assertTakesEvents({ id, webhookUrl, webhookHeldAt }: ApplicationRow): void {
  const setUrl = `${ADMIN} application update ${id} --webhook-url ${webhookUrl ?? "URL"}`;
  if (webhookUrl === null) throw new UserError(`Application ${id} has no webhook URL: set one with ${setUrl}.`);
  if (webhookHeldAt !== null) {
    throw new UserError(
      `Deliveries to ${webhookUrl} are held. Once the receiver works, release all of them with ${ADMIN} webhook test ${id} (a 2xx response does it) or ${setUrl}`,
    );
  }
}
