import { setTimeout as wait } from "node:timers/promises";
import { and, eq, sql } from "drizzle-orm";
import { type ApplicationId, newEventId } from "../../shared/identifiers.ts";
import { application, webhookEvent } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { APPLICATION, findApplication } from "../application/record.ts";
import { seconds } from "../command-line/arguments.ts";
import { command, option } from "../command-line/command.ts";
import { describeError, UserError } from "../command-line/errors.ts";
import { catchInterrupt } from "../command-line/interrupt.ts";
import { fieldLines, shorten } from "../command-line/output.ts";
import type { Session } from "../command-line/session.ts";
import { ADMIN } from "../command-line/shell.ts";
import { type Database, insertWhere, type Orm } from "../platform/database.ts";
import { DUE_FIRST, noUrl, RESPONSE_CHARACTERS } from "./event.ts";

const POLL_MILLISECONDS = 300;
const NOTE_AFTER_MILLISECONDS = 1000;
const LEFT_BEHIND = "The service may still send the event.";

export const testCommand = command("test", {
  arguments: [APPLICATION],
  summary: "send a test event and show the response",
  description:
    "Sends one webhook:test event to the application's URL and shows the response. The running service sends it. " +
    "A 2xx response also releases deliveries that are held. The exit code is 0 for a 2xx response only. Ctrl-C withdraws the event.",
  options: { wait: option("--wait <seconds>", "how long to wait for the service", seconds, 90) },
  work: (session, id, { wait: waitSeconds }) => testEndpoint(session, id, waitSeconds * 1000),
  text: testText,
  failure: ({ delivered, status }) => (delivered ? undefined : refusalText(status)),
});

/**
 * Puts a test event into the outbox and waits until the service has sent it, once.
 *
 * @throws UserError when there is no URL, when the application is disabled, when the service does not send it in time, or when
 *   the wait is interrupted
 */
export async function testEndpoint(
  { homes, output, wake, reopen }: Pick<Session, "homes" | "output" | "wake" | "reopen">,
  applicationId: ApplicationId,
  waitMilliseconds: number,
) {
  const database = homes.databaseFor(applicationId);
  const { webhookUrl: url, disabledAt } = await findApplication(database, applicationId);
  if (disabledAt !== null) {
    throw new UserError(
      `Application ${applicationId} is disabled, and its events wait: enable it first with ${ADMIN} application enable ${applicationId}.`,
    );
  }
  if (url === null) throw noUrl(applicationId);
  // D1's time, like the service's: this computer's clock may be wrong by hours.
  const createdAt = await database.readClock();
  const id = newEventId(createdAt);
  const send = async () => {
    await database.run((orm) => insertTestEvent(orm, applicationId, id, createdAt));
    // If this fails, the next tick finds the event.
    await wake(applicationId).catch(() => {});
    return untilSent(database, applicationId, id, Date.now() + waitMilliseconds);
  };
  const note = "Waiting for the service, which sends it within a minute. Ctrl-C withdraws the event.";
  const noted = setTimeout(output.note, NOTE_AFTER_MILLISECONDS, note);
  const interrupt = catchInterrupt(LEFT_BEHIND);
  const sending = send();
  let sent: Awaited<typeof sending>;
  try {
    await interrupt.raceWith(sending);
    if (interrupt.isCaught()) throw new UserError("Interrupted, and the event is withdrawn unless it is being sent.");
    sent = await sending;
  } catch (error) {
    sending.catch(() => {});
    // Ctrl-C in a terminal also ends the local database's process.
    const withdrawal = reopen().then((reopened) =>
      withdraw(reopened.homes.databaseFor(applicationId), applicationId, id).finally(reopened.close),
    );
    await withdrawal.catch((cause: unknown) => {
      throw new UserError(`${describeError(error)} ${LEFT_BEHIND}`, { cause });
    });
    throw error;
  } finally {
    clearTimeout(noted);
    interrupt.release();
  }
  if (sent === null) throw noUrl(applicationId);
  return {
    eventId: id,
    url,
    delivered: sent.state === "delivered",
    /** Null when there was no response. */
    status: sent.lastStatus,
    outcome: sent.lastOutcome,
    milliseconds: sent.lastMilliseconds,
    response: sent.lastResponse,
  };
}

function insertTestEvent(orm: Orm, applicationId: ApplicationId, id: string, createdAt: number) {
  const event = "webhook:test";
  const payload = JSON.stringify({ id, event, createdAt: isoTime(createdAt), data: {} });
  const row = { applicationId, id, event, payload, state: "pending", dueAt: DUE_FIRST, createdAt } as const;
  const ofApplication = sql`FROM ${application}
    WHERE ${application.id} = ${applicationId} AND ${application.webhookUrl} IS NOT NULL`;
  return insertWhere(orm, webhookEvent, row, ofApplication).onConflictDoNothing();
}

const isEvent = (applicationId: ApplicationId, id: string) =>
  and(eq(webhookEvent.applicationId, applicationId), eq(webhookEvent.id, id));

/** Nobody waits for the result any more, so the event must not be sent. If it is being sent, it is leased, and stays. */
async function withdraw(database: Database, applicationId: ApplicationId, id: string): Promise<void> {
  const isUnleased = sql`${webhookEvent.leaseUntil} <= unixepoch('subsec') * 1000`;
  const isUnsent = and(isEvent(applicationId, id), eq(webhookEvent.state, "pending"), isUnleased);
  await database.run((orm) => orm.delete(webhookEvent).where(isUnsent));
}

/** The event's row once it was sent. Null when there is none: the URL was removed meanwhile. @throws UserError */
async function untilSent(database: Database, applicationId: ApplicationId, id: string, deadline: number) {
  for (;;) {
    const isOver = Date.now() >= deadline;
    if (isOver) await withdraw(database, applicationId, id);
    const [row] = await database.run((orm) => orm.select().from(webhookEvent).where(isEvent(applicationId, id)));
    if (row !== undefined && row.state !== "pending") return row;
    if (isOver) {
      throw new UserError("The test event was not sent in time: the service must be running (locally: npm start).");
    }
    if (row === undefined) return null;
    await wait(POLL_MILLISECONDS);
  }
}

function testText(result: Awaited<ReturnType<typeof testEndpoint>>): string {
  const { delivered, milliseconds, response } = result;
  return fieldLines({
    URL: result.url,
    Event: result.eventId,
    Result: delivered ? "delivered" : "not delivered",
    Status: result.status ?? `none (${result.outcome})`,
    Time: milliseconds === null ? undefined : `${milliseconds} ms`,
    Response: response ? shorten(response, RESPONSE_CHARACTERS) : undefined,
  });
}

/** A 401 usually means that the receiver verifies with another secret, the most common mistake. */
const refusalText = (status: number | null): string =>
  status === 401
    ? "The endpoint refused the test event (401): does it verify with this application's secret, and is its clock right?"
    : "The endpoint did not accept the test event: a receiver must respond with 2xx within 15 seconds.";
