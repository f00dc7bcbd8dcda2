import { and, desc, eq, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { EVENT_STATES, type EventState, webhookEvent } from "../../shared/schema.ts";
import { APPLICATION, findApplication } from "../application/record.ts";
import { listLimit } from "../command-line/arguments.ts";
import { choice, command, group, option } from "../command-line/command.ts";
import { tableLines } from "../command-line/output.ts";
import type { Database } from "../platform/database.ts";
import { idsOfEvents, listedEvent } from "./event.ts";
import { replayCommand } from "./replay.ts";
import { showCommand } from "./show.ts";
import { testCommand } from "./test.ts";

export const webhookCommands = group(
  {
    name: "webhook",
    summary: "test webhooks, list and show events, send them again",
    description: "Tests webhooks, lists and shows events, and sends them again.",
  },
  testCommand,
  command({
    name: "list",
    arguments: [APPLICATION],
    summary: "list an application's events",
    description: "Lists the events of an application, newest first.",
    options: {
      state: choice("--state <state>", "only events in this state", EVENT_STATES),
      limit: option("--limit <n>", "the most to list", listLimit, 100),
    },
    examples: ["app_…", "app_… --state exhausted --json"],
    work: ({ homes }, id, options) => listEvents(homes.of(id), id, options),
    text: eventTable,
  }),
  showCommand,
  replayCommand,
);

interface ListOptions {
  state?: EventState | undefined;
  limit: number;
}

/** The newest events of an application. */
export async function listEvents(database: Database, applicationId: ApplicationId, { state, limit }: ListOptions) {
  await findApplication(database, applicationId);
  const newest = sql`ORDER BY id DESC LIMIT ${limit}`;
  const inState =
    state === undefined || state === "delivered"
      ? state && eq(webhookEvent.state, state)
      : sql`id IN (${idsOfEvents(applicationId, state, newest)})`;
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

function eventTable(events: readonly ReturnType<typeof listedEvent>[]): string {
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
