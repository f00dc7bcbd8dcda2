import type { Command } from "commander";
import type { ListOptions } from "../commands/webhook.ts";
import { ADMIN, Mistake } from "../mistake.ts";
import type { ListedEvent } from "../operations/events.ts";
import type { TestResult } from "../operations/test-event.ts";
import { fieldLines, shorten, tableLines } from "../output.ts";
import { withSession } from "../session.ts";

const RESPONSE_CHARACTERS = 200;

/** `webhook test` */
export async function test(id: string, waitMilliseconds: number, command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const { testEndpoint } = await import("../operations/test-event.ts");
    const result = await testEndpoint(database, id, waitMilliseconds);
    output.result(result, () => testText(result));
    if (result.delivered) return;
    throw new Mistake(refusalText(result.status));
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

/** `webhook replay` */
export async function replay(id: string, allExhausted: boolean, command: Command): Promise<void> {
  if (!allExhausted && id.startsWith("app_")) {
    throw new Mistake(
      `${id} is an application: add --all-exhausted, or give an event ID from ${ADMIN} webhook list ${id}.`,
    );
  }
  await withSession(command, async ({ database, output }) => {
    const { replayEvent, replayExhausted } = await import("../operations/events.ts");
    if (allExhausted) {
      const replayed = await replayExhausted(database, id);
      output.result(replayed, () => `${replayed.replayed} events of ${id} are due again.`);
    } else {
      const replayed = await replayEvent(database, id);
      output.result(replayed, () => `Event ${id} of ${replayed.applicationId} is due again.`);
    }
  });
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
