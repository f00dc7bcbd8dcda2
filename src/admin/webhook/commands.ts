import { type Command, Option } from "commander";
import { and, desc, eq, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { EVENT_STATES, type EventState, webhookEvent } from "../../shared/schema.ts";
import { applicationIdArgument, findApplication } from "../application/record.ts";
import { listLimit } from "../command-line/arguments.ts";
import { tableLines } from "../command-line/output.ts";
import { printing } from "../command-line/session.ts";
import { examples } from "../command-line/shell.ts";
import type { Database } from "../platform/database.ts";
import { idsOfEvents, listedEvent } from "./event.ts";
import { addReplayCommand } from "./replay.ts";
import { addShowCommand } from "./show.ts";
import { addTestCommand } from "./test.ts";

/** Adds `webhook …`. */
export function addWebhookCommands(program: Command): void {
  const group = program
    .command("webhook")
    .summary("test webhooks, list and show events, send them again")
    .description("Tests webhooks, lists and shows events, and sends them again.");
  addTestCommand(group);
  group
    .command("list")
    .argument("<id>", "the application's ID", applicationIdArgument)
    .summary("list an application's events")
    .description("Lists the events of an application, newest first.")
    .addOption(new Option("--state <state>", "only events in this state").choices(EVENT_STATES))
    .option("--limit <n>", "the most to list", listLimit, 100)
    .addHelpText("after", examples("webhook list app_…", "webhook list app_… --state exhausted --json"))
    .action(
      printing(
        ({ homes }, id: ApplicationId, options: ListOptions) => listEvents(homes.of(id), id, options),
        eventTable,
      ),
    );
  addShowCommand(group);
  addReplayCommand(group);
}

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
