import type { Command } from "commander";
import { applicationName, badgeNumber, lifetime, seconds } from "../arguments.ts";
import { examples } from "../program.ts";

/** The options that `create` and `update` share, as commander gives them. */
export interface ApplicationOptions {
  name?: string;
  webhookUrl?: string | false;
  first?: number;
  last?: number;
  requireSecret?: boolean;
  reuseAfter?: number;
  signatureLifetime?: number | null;
}

/** Adds `application …`. */
export function addApplicationCommands(program: Command): void {
  const group = program
    .command("application")
    .summary("create, show and change applications")
    .description("Creates, shows and changes applications.");
  addCreate(group);
  addList(group);
  addShow(group);
  addUpdate(group);
  addDisable(group);
  addEnable(group);
}

const actions = () => import("../actions/application.ts");

function addCreate(group: Command): void {
  group
    .command("create")
    .summary("create an application and print its ID and secret")
    .description(
      "Creates an application and prints its ID and secret.\n\n" +
        "The secret is shown this once: it cannot be read back. Without --first and --last the application gets the " +
        "next free block of 10,000,000 numbers from 1,000,000,000 on. Ranges of applications never overlap.",
    )
    .requiredOption("--name <name>", "name for people", applicationName)
    .option("--webhook-url <url>", "where badge:created events are sent; https only (http://localhost:PORT locally)")
    .option("--first <n>", "first badge number of the range", badgeNumber)
    .option("--last <n>", "last badge number of the range", badgeNumber)
    .option("--require-secret", "let only callers with the secret create invitations")
    .option("--reuse-after <seconds>", "how long the number of a revoked or expired invitation rests (0)", seconds)
    .option("--signature-lifetime <seconds>", "how long signatures are valid (none: for ever)", lifetime)
    .addHelpText(
      "after",
      examples(
        "application create --name 'Head office'",
        "application create --name Visitors --first 5000 --last 5999 --json",
        "application create --name App --webhook-url https://app.example.com/hooks",
      ),
    )
    .action(async (options: ApplicationOptions, command: Command) => (await actions()).create(options, command));
}

function addList(group: Command): void {
  group
    .command("list")
    .summary("list all applications")
    .description("Lists all applications in the order of their badge numbers.")
    .addHelpText("after", examples("application list", "application list --env production --json"))
    .action(async (_options: object, command: Command) => (await actions()).list(command));
}

function addShow(group: Command): void {
  group
    .command("show <id>")
    .summary("show one application")
    .description("Shows an application, its secrets (not their values) and its signing keys.")
    .addHelpText("after", examples("application show app_…"))
    .action(async (id: string, _options: object, command: Command) => (await actions()).show(id, command));
}

function addUpdate(group: Command): void {
  group
    .command("update <id>")
    .summary("change an application")
    .description(
      "Changes an application. What is not given stays as it is.\n\n" +
        "A number range can only grow, and only at its end. Setting the webhook URL, also to what it is, sends the " +
        "events that were held because the endpoint failed.",
    )
    .option("--name <name>", "name for people", applicationName)
    .option("--webhook-url <url>", 'where badge:created events are sent; "" for nowhere')
    .option("--no-webhook-url", "send no events any more")
    .option("--first <n>", "accepted only if it stays the same", badgeNumber)
    .option("--last <n>", "new last badge number of the range", badgeNumber)
    .option("--require-secret", "let only callers with the secret create invitations")
    .option("--no-require-secret", "let devices create invitations too")
    .option("--reuse-after <seconds>", "how long the number of a revoked or expired invitation rests", seconds)
    .option("--signature-lifetime <seconds>", "how long signatures are valid; none or 0: for ever", lifetime)
    .addHelpText(
      "after",
      examples(
        "application update app_… --last 1029999999",
        "application update app_… --webhook-url https://app.example.com/hooks",
        "application update app_… --no-webhook-url --require-secret",
      ),
    )
    .action(async (id: string, options: ApplicationOptions, command: Command) =>
      (await actions()).update(id, options, command),
    );
}

function addDisable(group: Command): void {
  group
    .command("disable <id>")
    .summary("refuse an application's requests")
    .description("Refuses all requests of an application within half a minute. Its badges and numbers are kept.")
    .addHelpText("after", examples("application disable app_…"))
    .action(async (id: string, _options: object, command: Command) => (await actions()).disable(id, true, command));
}

function addEnable(group: Command): void {
  group
    .command("enable <id>")
    .summary("accept them again")
    .description("Accepts the requests of a disabled application again.")
    .addHelpText("after", examples("application enable app_…"))
    .action(async (id: string, _options: object, command: Command) => (await actions()).disable(id, false, command));
}
