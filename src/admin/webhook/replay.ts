import { and, eq, exists, type SQL, sql } from "drizzle-orm";
import { type ApplicationId, parseApplicationId } from "../../shared/identifiers.ts";
import { application, webhookEvent } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { APPLICATION, type ApplicationRow, findApplication } from "../application/record.ts";
import { argument, option, rawCommand } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { counted, formatTime } from "../command-line/output.ts";
import { ADMIN, shellWord } from "../command-line/shell.ts";
import { administrator, insertHistoryRow, newHistoryRow } from "../history/note.ts";
import type { Database } from "../platform/database.ts";
import {
  DUE_CHUNK_EVENTS,
  DUE_FIRST,
  databaseOfEvent,
  findEvent,
  makeDue,
  noUrl,
  REPEATABLE_CONDITION,
  stoppedEventIds,
} from "./event.ts";

export const replayCommand = rawCommand("replay", {
  arguments: [argument("<id>", "an event's ID; with --all-exhausted, an application's", "", String)],
  summary: "send events again",
  description:
    "Sends an event at once, whatever its state, with a fresh set of attempts: give the event's ID. With " +
    "--all-exhausted, sends all events of an application again whose attempts are used up: give the " +
    "application's ID. Receivers recognize a repeated event by its ID.",
  options: { allExhausted: option("--all-exhausted", "all exhausted events of the application <id>") },
  examples: ["evt_…", "app_… --all-exhausted"],
  async action({ output, inSession }, id, { allExhausted = false }) {
    if (!allExhausted && parseApplicationId(id) !== undefined) {
      throw new UserError(
        `${id} is an application: add --all-exhausted, or give an event ID from ${ADMIN} webhook list ${id}.`,
      );
    }
    await inSession(async ({ homes, actor, wake }) => {
      if (!allExhausted) {
        const replayed = await replayEvent(await databaseOfEvent(homes, id), id, actor);
        await wake(replayed.applicationId).catch(() => {});
        const text = `Event ${id} of ${replayed.applicationId} ${previously(replayed)}.${whenSent(replayed)}`;
        return output.result(replayed, () => text);
      }
      const applicationId = APPLICATION.parse(id);
      const replayed = await replayExhausted(homes.databaseFor(applicationId), applicationId, actor);
      // If that fails, the next tick finds the events.
      await wake(applicationId).catch(() => {});
      const verb = replayed.replayed === 1 ? "is" : "are";
      const text = `${counted(replayed.replayed, "event")} of ${id} ${verb} due again.${whenSent(replayed)}`;
      output.result(replayed, () => text);
    });
  },
});

type ReplayedEvent = Awaited<ReturnType<typeof replayEvent>>;

/**
 * Makes one event due before all others of its application, whatever its state, with a fresh set of attempts. It does
 * not wait for an attempt that is running, so the receiver may get the event twice.
 *
 * @throws UserError when there is no such event, or its application has no URL or is on hold
 */
export async function replayEvent(database: Database, eventId: string, actor = administrator()) {
  const { event, application: owner } = await findEvent(database, eventId);
  assertTakesEvents(owner);
  const isEvent = and(eq(webhookEvent.applicationId, owner.id), eq(webhookEvent.id, eventId), takesEvents(owner.id));
  const historyRow = await newHistoryRow(database, owner.id, actor, { action: "event:replayed", detail: { eventId } });
  const [, { meta }] = await database.run((orm) =>
    orm.batch([
      insertHistoryRow(orm, historyRow, exists(orm.select().from(webhookEvent).where(isEvent))),
      orm
        .update(webhookEvent)
        .set({ state: "pending", attempts: 0, dueAt: DUE_FIRST, leaseUntil: 0, deliveredAt: null })
        .where(isEvent),
    ]),
  );
  if (meta.changes === 0) throw new UserError(`Application ${owner.id} changed meanwhile: run the command again.`);
  const dueAt = Math.max(event.dueAt ?? 0, event.leaseUntil);
  const isWaiting = event.state === "pending" && dueAt > Date.now();
  return {
    id: eventId,
    applicationId: owner.id,
    previousState: event.state,
    /** For a pending event, when its next attempt would have been; null when it was due already. */
    previousAttemptAt: isWaiting ? isoTime(dueAt) : null,
    /** The event waits until the application is enabled. */
    disabled: owner.disabledAt !== null,
  };
}

/** Makes all exhausted events of an application due again, the oldest first. */
export async function replayExhausted(database: Database, applicationId: ApplicationId, actor = administrator()) {
  const owner = await findApplication(database, applicationId);
  assertTakesEvents(owner);
  const historyRow = await newHistoryRow(database, applicationId, actor, {
    action: "event:replayed",
    detail: { all: "exhausted" },
  });
  const exhausted = stoppedEventIds(applicationId, "exhausted", sql`AND ${REPEATABLE_CONDITION}`);
  const existsCondition = sql`${takesEvents(applicationId)} AND EXISTS (${exhausted})`;
  let replayed = 0;
  for (let changes = DUE_CHUNK_EVENTS; changes === DUE_CHUNK_EVENTS; replayed += changes) {
    const [, { meta }] = await database.run((orm) =>
      orm.batch([
        insertHistoryRow(orm, historyRow, existsCondition),
        makeDue(orm, applicationId, "exhausted", takesEvents(applicationId)),
      ]),
    );
    ({ changes } = meta);
  }
  return { applicationId, replayed, disabled: owner.disabledAt !== null };
}

const takesEvents = (applicationId: ApplicationId): SQL =>
  sql`EXISTS (SELECT 1 FROM ${application} WHERE ${application.id} = ${applicationId}
    AND ${application.webhookUrl} IS NOT NULL AND ${application.webhookHeldAt} IS NULL)`;

function assertTakesEvents({ id, webhookUrl, webhookHeldAt }: ApplicationRow): void {
  if (webhookUrl === null) throw noUrl(id);
  if (webhookHeldAt !== null) {
    const setUrl = `${ADMIN} application update ${id} --webhook-url ${shellWord(webhookUrl)}`;
    throw new UserError(
      `Deliveries to ${webhookUrl} are held. Once the receiver works, release all of them with ${ADMIN} webhook test ${id} (a 2xx response does it) or ${setUrl}`,
    );
  }
}

function previously({ previousState, previousAttemptAt }: ReplayedEvent): string {
  switch (previousState) {
    case "delivered":
      return "had been delivered and is due again";
    case "exhausted":
      return "had used up its attempts and is due again";
    case "held":
      return "was held and is due now";
    case "pending":
      return previousAttemptAt === null
        ? "was due already"
        : `was to be tried at ${formatTime(previousAttemptAt)} and is due now`;
  }
}

const whenSent = ({ applicationId, disabled }: { applicationId: ApplicationId; disabled: boolean }): string =>
  disabled
    ? ` The application is disabled, so nothing is sent before ${ADMIN} application enable ${applicationId}.`
    : " The running service sends it within about a minute.";
