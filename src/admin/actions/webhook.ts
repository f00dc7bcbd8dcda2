import type { Command } from "commander";
import type { ListOptions } from "../commands/webhook.ts";
import { ADMIN, UserError } from "../errors.ts";
import type { ListedEvent, ReplayedEvent } from "../operations/events.ts";
import type { ShownEvent } from "../operations/show-event.ts";
import type { TestResult } from "../operations/test-event.ts";
import { fieldLines, plain, shorten, shownTime, tableLines } from "../output.ts";
import { withSession } from "../session.ts";

const RESPONSE_CHARACTERS = 200;

/** `webhook test` */
export async function test(id: string, waitMilliseconds: number, command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const { testEndpoint } = await import("../operations/test-event.ts");
    const result = await testEndpoint(database, id, waitMilliseconds);
    output.result(result, () => testText(result));
    if (result.delivered) return;
    throw new UserError(refusalText(result.status));
  });
}

/** `webhook list` */
export async function list(id: string, { state, limit }: ListOptions, command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const { listEvents } = await import("../operations/events.ts");
    const events = await listEvents(database, id, { state, limit });
    output.result(events, () => eventTable(events));
  });
}

/** `webhook show` */
export async function show(id: string, command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const { showEvent } = await import("../operations/show-event.ts");
    const event = await showEvent(database, id);
    output.result(event, () => eventText(event));
  });
}

/** `webhook replay` */
export async function replay(id: string, allExhausted: boolean, command: Command): Promise<void> {
  if (!allExhausted && id.startsWith("app_")) {
    throw new UserError(
      `${id} is an application: add --all-exhausted, or give an event ID from ${ADMIN} webhook list ${id}.`,
    );
  }
  await withSession(command, async ({ database, output }) => {
    const { replayEvent, replayExhausted } = await import("../operations/events.ts");
    if (allExhausted) {
      const replayed = await replayExhausted(database, id);
      output.result(replayed, () => `${replayed.replayed} events of ${id} are due again.${whenSent(replayed)}`);
    } else {
      const replayed = await replayEvent(database, id);
      output.result(replayed, () => replayedText(replayed));
    }
  });
}

function replayedText(replayed: ReplayedEvent): string {
  return `Event ${replayed.id} of ${replayed.applicationId} ${previously(replayed)}.${whenSent(replayed)}`;
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
        : `was to be tried at ${shownTime(Date.parse(previousAttemptAt))} and is due now`;
  }
}

const whenSent = ({ applicationId, disabled }: { applicationId: string; disabled: boolean }): string =>
  disabled
    ? ` The application is disabled, so nothing is sent before ${ADMIN} application enable ${applicationId}.`
    : " The running service sends it within about a minute.";

function eventText({ payload, ...event }: ShownEvent): string {
  const fields = fieldLines({
    "Event ID": event.id,
    Event: event.event,
    Application: event.applicationId,
    "Badge number": event.badgeNumber ?? undefined,
    State: event.state,
    Created: secondsOf(event.createdAt),
    Delivered: secondsOf(event.deliveredAt),
    Attempts: event.attempts,
    "Last status": event.lastStatus ?? undefined,
    "Last outcome": event.lastOutcome ?? undefined,
    "Last response": event.lastResponse ? shorten(event.lastResponse, RESPONSE_CHARACTERS) : undefined,
    "Last duration": event.lastMilliseconds === null ? undefined : `${event.lastMilliseconds} ms`,
    "Next attempt": nextAttemptText(event),
  });
  const body = JSON.stringify(payload, null, 2).split("\n");
  return [fields, "", "  Payload", ...body.map((line) => `  ${plain(line)}`)].join("\n");
}

const secondsOf = (time: string | null): string | undefined =>
  time === null ? undefined : shownTime(Date.parse(time));

function nextAttemptText({ state, applicationId, nextAttemptAt, obstacle }: Omit<ShownEvent, "payload">): string {
  if (state === "delivered" || state === "exhausted") return `none: the event is ${state}`;
  switch (obstacle) {
    case "disabled":
      return `none while the application is disabled: ${ADMIN} application enable ${applicationId}`;
    case "no-url":
      return `none without a webhook URL: ${ADMIN} application update ${applicationId} --webhook-url URL`;
    case "held-endpoint":
      return `none while deliveries are held: ${ADMIN} webhook test ${applicationId} releases them`;
    case null:
      break;
  }
  if (nextAttemptAt === null || Date.parse(nextAttemptAt) <= Date.now()) return "due now: within about a minute";
  return shownTime(Date.parse(nextAttemptAt));
}

function eventTable(events: readonly ListedEvent[]): string {
  const rows = events.map(({ id, event, state, attempts, lastStatus, createdAt }) => [
    id,
    event,
    state,
    attempts,
    lastStatus ?? "",
    createdAt?.slice(5, 16).replace("T", " ") ?? "",
  ]);
  return tableLines(["EVENT ID", "EVENT", "STATE", "TRY", "LAST", "CREATED"], rows, "There are no such events.");
}

/** A 401 is what a receiver says that checks with another secret: the first mistake that is made. */
const refusalText = (status: number | null): string =>
  status === 401
    ? "The endpoint refused the test event (401): does it check with this application's secret?"
    : "The endpoint did not take the test event: a receiver answers 2xx within 15 seconds.";

function testText({ eventId, url, delivered, status, outcome, milliseconds, response }: TestResult): string {
  return fieldLines({
    URL: url,
    Event: eventId,
    Result: delivered ? "delivered" : "not delivered",
    Status: status ?? `none (${outcome})`,
    Time: milliseconds === null ? undefined : `${milliseconds} ms`,
    Answer: response ? shorten(response, RESPONSE_CHARACTERS) : undefined,
  });
}
