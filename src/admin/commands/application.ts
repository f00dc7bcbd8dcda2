import type { Command } from "commander";
import { applicationName, badgeNumber, lifetime, seconds } from "../arguments.ts";
import { Mistake } from "../mistake.ts";
import type { CreatedApplication } from "../operations/application-create.ts";
import { bold, fieldLines } from "../output.ts";
import { examples } from "../program.ts";
import { commonOptions, withSession } from "../session.ts";

interface CreateOptions {
  name: string;
  webhookUrl?: string;
  first?: number;
  last?: number;
  requireSecret: boolean;
  reuseAfter?: number;
  signatureLifetime?: number | null;
}

/** Adds `application …`. */
export function addApplicationCommands(program: Command): void {
  const group = program.command("application").description("Creates and changes applications.");
  addCreate(group);
}

function addCreate(group: Command): void {
  group
    .command("create")
    .description(
      "Creates an application and prints its ID and secret.\n\n" +
        "The secret is shown this once: it cannot be read back. Without --first and --last the application gets the " +
        "next free block of 10,000,000 numbers from 1,000,000,000 on. Ranges of applications never overlap.",
    )
    .requiredOption("--name <name>", "name for people", applicationName)
    .option("--webhook-url <url>", "where badge:created events are sent; https only (http://localhost:PORT locally)")
    .option("--first <n>", "first badge number of the range", badgeNumber)
    .option("--last <n>", "last badge number of the range", badgeNumber)
    .option("--require-secret", "let only callers with the secret create invitations", false)
    .option("--reuse-after <seconds>", "how long the number of a revoked or expired invitation rests", seconds)
    .option("--signature-lifetime <seconds>", "how long signatures are valid; none if not given", lifetime)
    .addHelpText(
      "after",
      examples(
        "application create --name 'Head office'",
        "application create --name Visitors --first 5000 --last 5999 --json",
        "application create --name App --webhook-url https://app.example.com/hooks",
      ),
    )
    .action((options: CreateOptions, command: Command) => create(options, command));
}

async function create(options: CreateOptions, command: Command): Promise<void> {
  const { parseRange } = await import("../operations/number-range.ts");
  const range = parseRange(options.first, options.last);
  const webhookUrl = await checkedUrl(options.webhookUrl, command);
  await withSession(
    command,
    async ({ database, output }) => {
      const { createApplication } = await import("../operations/application-create.ts");
      const created = await createApplication(database, {
        name: options.name,
        range,
        webhookUrl,
        requireSecret: options.requireSecret,
        reuseAfterSeconds: options.reuseAfter ?? 0,
        signatureLifetimeSeconds: options.signatureLifetime ?? null,
      });
      output.result(created, () => createdText(created));
    },
    { seals: true },
  );
}

/** The URL if it may be called, null for none. It is kept as it was given. */
async function checkedUrl(text: string | undefined, command: Command): Promise<string | null> {
  if (text === undefined || text === "") return null;
  const { checkWebhookUrl, describeUrlRefusal } = await import("../../webhooks/url-guard.ts");
  const check = checkWebhookUrl(text, { local: commonOptions(command).env === undefined });
  if (!check.ok) throw new Mistake(describeUrlRefusal(check.reason));
  return text;
}

function createdText(created: CreatedApplication): string {
  return `${bold(`Created application "${created.name}".`)}

${fieldLines({
  "Application ID": created.applicationId,
  "Application secret": created.applicationSecret,
  "Badge numbers": `${created.firstNumber} to ${created.lastNumber}`,
  "Webhook URL": created.webhookUrl ?? "none",
})}

Keep the secret now: it is not shown again.`;
}
