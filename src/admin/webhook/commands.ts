import { and, desc, eq, lt, type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { pendingEventIds, pendingEventRows } from "../../shared/pending-events.ts";
import { EVENT_STATES, type EventState, webhookEvent } from "../../shared/schema.ts";
import { APPLICATION, findApplication } from "../application/record.ts";
import { listLimit } from "../command-line/arguments.ts";
import { choice, command, group, option } from "../command-line/command.ts";
import { tableLines } from "../command-line/output.ts";
import type { Database } from "../platform/database.ts";
import { LISTED_COLUMNS, listedEvent, stoppedEventIds } from "./event.ts";
import { replayCommand } from "./replay.ts";
import { showCommand } from "./show.ts";
import { testCommand } from "./test.ts";

export const webhookCommands = group("webhook", {
  summary: "test webhooks, list and show events, send them again",
  description: "Tests webhooks, lists and shows events, and sends them again.",
  commands: [
    testCommand,
    command("list", {
      arguments: [APPLICATION],
      summary: "list an application's events",
      description: "Lists the events of an application, newest first.",
      options: {
        state: choice("--state <state>", "only events in this state", EVENT_STATES),
        limit: option("--limit <n>", "the most to list", listLimit, 100),
      },
      examples: ["", "--state exhausted --json"],
      work: ({ homes }, id, options) => listEvents(homes.databaseFor(id), id, options),
      text: eventTable,
    }),
    showCommand,
    replayCommand,
  ],
});

/** Events read by one statement: D1 runs one at a time, and an application may have millions of events. */
const CHUNK_EVENTS = 1000;

/** An application's newest events. If few have the state, only those are read; otherwise all are, in chunks. */
export async function listEvents(
  database: Database,
  applicationId: ApplicationId,
  { state, limit }: { state?: EventState | undefined; limit: number },
) {
  await findApplication(database, applicationId);
  const read = (condition: SQL | undefined, most: number) =>
    database.run((orm) =>
      orm
        .select(LISTED_COLUMNS)
        .from(webhookEvent)
        .where(and(eq(webhookEvent.applicationId, applicationId), condition))
        .orderBy(desc(webhookEvent.id))
        .limit(most),
    );
  if (state === "exhausted" || state === "held") {
    const newest = stoppedEventIds(applicationId, state, sql`ORDER BY ${webhookEvent.id} DESC LIMIT ${limit}`);
    return (await read(sql`${webhookEvent.id} IN (${newest})`, limit)).map(listedEvent);
  }
  // No index orders pending events by ID.
  if (state === "pending" && (await countPendingRows(database, applicationId)) < CHUNK_EVENTS) {
    return (await read(sql`${webhookEvent.id} IN (${pendingEventIds(applicationId)})`, limit)).map(listedEvent);
  }
  const listed: ReturnType<typeof listedEvent>[] = [];
  const most = state === undefined ? Math.min(limit, CHUNK_EVENTS) : CHUNK_EVENTS;
  for (let last: string | undefined; ; ) {
    const chunk = await read(last === undefined ? undefined : lt(webhookEvent.id, last), most);
    listed.push(...chunk.map(listedEvent).filter((event) => state === undefined || event.state === state));
    last = chunk.at(-1)?.id;
    if (listed.length >= limit || chunk.length < most) return listed.slice(0, limit);
  }
}

/** How many rows it takes to read all pending events of an application, counted up to twice `CHUNK_EVENTS`. */
async function countPendingRows(database: Database, applicationId: ApplicationId): Promise<number> {
  const rows = pendingEventRows(applicationId, CHUNK_EVENTS);
  const counted = await database.run((orm) => orm.get<{ rows: number }>(sql`SELECT ${rows} AS rows`));
  return counted.rows;
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
