import { and, eq, type SQL, sql } from "drizzle-orm";
import { application, webhookEvent } from "../shared/schema.ts";
import type { ApplicationRow } from "./application-record.ts";
import { UserError } from "./errors.ts";
import { isoTime } from "./output.ts";
import type { Database, Orm } from "./platform/database.ts";
import { ADMIN } from "./shell.ts";

/** How much of a receiver's response is shown. */
export const RESPONSE_CHARACTERS = 200;

export type EventRow = typeof webhookEvent.$inferSelect;

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

export function listedEvent(row: EventRow): ListedEvent {
  const { id, event, state, attempts, lastStatus, createdAt, deliveredAt } = row;
  return { id, event, state, attempts, lastStatus, createdAt: isoTime(createdAt), deliveredAt: isoTime(deliveredAt) };
}

const EVENT_ID = /^evt_[0-9a-z]{26}$/;

/**
 * Finds an event by its ID alone, which is unique. The key of events begins with the application, so each application is
 * looked up in it: few reads, however many events there are.
 *
 * @throws UserError when there is no such event
 */
export async function findEvent(
  database: Database,
  eventId: string,
): Promise<{ event: EventRow; application: ApplicationRow }> {
  if (!EVENT_ID.test(eventId)) {
    throw new UserError(
      `"${eventId}" is not an event ID, which looks like evt_…: ${ADMIN} webhook list app_… shows them.`,
    );
  }
  const [found] = await database.run((orm) =>
    orm
      .select({ event: webhookEvent, application })
      .from(application)
      .crossJoin(webhookEvent)
      .where(and(eq(webhookEvent.applicationId, application.id), eq(webhookEvent.id, eventId))),
  );
  if (found === undefined) {
    throw new UserError(`There is no event ${eventId}: ${ADMIN} webhook list app_… shows those there are.`);
  }
  return found;
}

/** `due_at` of what is due at once: the sweep sends such events oldest first. */
export const DUE_AT_ONCE = 0;

/** `due_at` of what goes before all other events of its application, because somebody waits for it. */
export const DUE_FIRST = -1;

/**
 * Makes all stopped events of an application due; the sweep sends them oldest first. The state stands in the text of the
 * statement, not beside it, so that the index of stopped events serves it.
 *
 * @param condition what must hold besides
 */
export function makeDue(orm: Orm, applicationId: string, state: "held" | "exhausted", condition: SQL) {
  const isStopped = sql`${webhookEvent.state} = ${sql.raw(`'${state}'`)}`;
  return orm
    .update(webhookEvent)
    .set({ state: "pending", attempts: 0, dueAt: DUE_AT_ONCE })
    .where(and(eq(webhookEvent.applicationId, applicationId), isStopped, condition));
}
