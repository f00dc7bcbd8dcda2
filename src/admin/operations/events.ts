import { and, desc, eq, ne, type SQL, sql } from "drizzle-orm";
import { application, webhookEvent } from "../../storage/schema.ts";
import { ADMIN, Mistake } from "../mistake.ts";
import { isoTime } from "../output.ts";
import type { Database } from "../platform/database.ts";
import { type ApplicationRow, findApplication } from "./applications.ts";
import { makeDue } from "./make-due.ts";

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
  return rows.map(({ id, event, state, attempts, lastStatus, createdAt, deliveredAt }) => ({
    id,
    event,
    state,
    attempts,
    lastStatus,
    createdAt: isoTime(createdAt),
    deliveredAt: isoTime(deliveredAt),
  }));
}

const EVENT_ID = /^evt_[0-9a-z]{26}$/;

/**
 * Makes one event due again, with all its attempts before it. One that is pending stays as it is.
 *
 * @throws Mistake when there is no such event or its application takes none
 */
export async function replayEvent(database: Database, eventId: string): Promise<{ id: string; applicationId: string }> {
  if (!EVENT_ID.test(eventId)) {
    throw new Mistake(
      `"${eventId}" is not an event ID, which looks like evt_…: ${ADMIN} webhook list app_… shows them.`,
    );
  }
  // By way of the applications, since events are found by application and ID.
  const [found] = await database.run((orm) =>
    orm
      .select({ application })
      .from(application)
      .innerJoin(webhookEvent, and(eq(webhookEvent.applicationId, application.id), eq(webhookEvent.id, eventId))),
  );
  if (found === undefined)
    throw new Mistake(`There is no event ${eventId}: ${ADMIN} webhook list app_… shows those there are.`);
  assertTakesEvents(found.application);
  const applicationId = found.application.id;
  await database.run((orm) =>
    orm
      .update(webhookEvent)
      .set({ state: "pending", attempts: 0, dueAt: Date.now(), deliveredAt: null })
      .where(
        and(
          eq(webhookEvent.applicationId, applicationId),
          eq(webhookEvent.id, eventId),
          ne(webhookEvent.state, "pending"),
          takesEvents(applicationId),
        ),
      ),
  );
  return { id: eventId, applicationId };
}

/** Makes all exhausted events of an application due again, the oldest first. */
export async function replayExhausted(
  database: Database,
  applicationId: string,
): Promise<{ applicationId: string; replayed: number }> {
  assertTakesEvents(await findApplication(database, applicationId));
  const { meta } = await database.run((orm) => makeDue(orm, applicationId, "exhausted", takesEvents(applicationId)));
  return { applicationId, replayed: meta.changes };
}

const takesEvents = (applicationId: string): SQL =>
  sql`EXISTS (SELECT 1 FROM ${application} WHERE ${application.id} = ${applicationId}
    AND ${application.webhookUrl} IS NOT NULL AND ${application.webhookHeldAt} IS NULL)`;

function assertTakesEvents({ id, webhookUrl, webhookHeldAt }: ApplicationRow): void {
  const setUrl = `${ADMIN} application update ${id} --webhook-url ${webhookUrl ?? "URL"}`;
  if (webhookUrl === null) throw new Mistake(`Application ${id} has no webhook URL: set one with ${setUrl}.`);
  if (webhookHeldAt !== null) {
    throw new Mistake(`Deliveries to ${webhookUrl} are held: release them with ${setUrl}`);
  }
}
