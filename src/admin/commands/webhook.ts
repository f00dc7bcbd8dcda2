import { type Command, Option } from "commander";
import { listLimit, seconds } from "../arguments.ts";
import { examples } from "../program.ts";

export interface ListOptions {
  state?: "pending" | "delivered" | "exhausted" | "held";
  limit: number;
}

/** Adds `webhook …`. */
export function addWebhookCommands(program: Command): void {
  const group = program
    .command("webhook")
    .summary("test webhooks, list and show events, send them again")
    .description("Tests webhooks, lists and shows events, and sends them again.");
  addTest(group);
  addList(group);
  addShow(group);
  addReplay(group);
}

const actions = () => import("../actions/webhook.ts");

function addTest(group: Command): void {
  group
    .command("test <id>")
    .summary("send a test event and show the answer")
    .description(
      "Sends one webhook:test event to the application's URL and shows what it answered. The running service sends it. " +
        "A 2xx answer also releases deliveries that are held. Exit code 0 for a 2xx answer only.",
    )
    .option("--wait <seconds>", "how long to wait for the service", seconds, 90)
    .addHelpText("after", examples("webhook test app_…"))
    .action(async (id: string, { wait }: { wait: number }, command: Command) =>
      (await actions()).test(id, wait * 1000, command),
    );
}

function addList(group: Command): void {
  const states = ["pending", "delivered", "exhausted", "held"];
  group
    .command("list <id>")
    .summary("list an application's events")
    .description("Lists the events of an application, newest first.")
    .addOption(new Option("--state <state>", "only events in this state").choices(states))
    .option("--limit <n>", "at most so many", listLimit, 100)
    .addHelpText("after", examples("webhook list app_…", "webhook list app_… --state exhausted --json"))
    .action(async (id: string, options: ListOptions, command: Command) => (await actions()).list(id, options, command));
}

function addShow(group: Command): void {
  group
    .command("show <event-id>")
    .summary("show an event, its payload and its next attempt")
    .description(
      "Shows one event: its badge number, its attempts and how the last one ended, when the next one is (UTC), and the " +
        "payload that is sent.",
    )
    .addHelpText("after", examples("webhook show evt_…", "webhook show evt_… --json"))
    .action(async (id: string, _options: object, command: Command) => (await actions()).show(id, command));
}

function addReplay(group: Command): void {
  group
    .command("replay <id>")
    .summary("send events again")
    .description(
      "Sends an event at once, in whatever state it is, with all its attempts before it: give the event's ID. With " +
        "--all-exhausted it sends all events of an application again whose attempts are used up: give the " +
        "application's ID. Receivers know an event by its ID and can tell that they had it already.",
    )
    .option("--all-exhausted", "all exhausted events of the application <id>")
    .addHelpText("after", examples("webhook replay evt_…", "webhook replay app_… --all-exhausted"))
    .action(async (id: string, { allExhausted = false }: { allExhausted?: boolean }, command: Command) =>
      (await actions()).replay(id, allExhausted, command),
    );
}
