import type { Command } from "commander";
import { checkWebhookUrl, describeUrlRefusal } from "../../shared/webhook-url.ts";
import { parseRange } from "../arguments.ts";
import type { ApplicationOptions } from "../commands/application.ts";
import { UserError } from "../errors.ts";
import type { CreatedApplication } from "../operations/application-create.ts";
import type { ShownApplication } from "../operations/applications.ts";
import { bold, fieldLines, shorten, tableLines } from "../output.ts";
import { commonOptions, withSession } from "../session.ts";
import { signingKeyTable } from "./key.ts";
import { secretTable } from "./secret.ts";

/** `application create` */
export async function create(options: ApplicationOptions, command: Command): Promise<void> {
  const webhookUrl = checkedUrl(options.webhookUrl, command) ?? null;
  const range = parseRange(options.first, options.last);
  const { name = "", requireSecret = false, reuseAfter = 0, signatureLifetime = null } = options;
  await withSession(
    command,
    async ({ database, output }) => {
      const { createApplication } = await import("../operations/application-create.ts");
      const created = await createApplication(database, {
        name,
        range,
        webhookUrl,
        requireSecret,
        reuseAfterSeconds: reuseAfter,
        signatureLifetimeSeconds: signatureLifetime,
      });
      output.result(created, () => createdText(created));
    },
    { seals: true },
  );
}

/** `application list` */
export async function list(command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const { listApplications } = await import("../operations/applications.ts");
    const applications = await listApplications(database);
    output.result(applications, () =>
      tableLines(
        ["APPLICATION ID", "NUMBERS", "STATE", "NAME"],
        applications.map((each) => [
          each.applicationId,
          `${each.firstNumber}-${each.lastNumber}`,
          shownState(each),
          shorten(each.name, 18),
        ]),
        "There are no applications yet.",
      ),
    );
  });
}

/** `application show` */
export async function show(id: string, command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const { countHeldEvents, findApplication, shownApplication } = await import("../operations/applications.ts");
    const { listSecrets } = await import("../operations/secrets.ts");
    const { listSigningKeys } = await import("../operations/signing-keys.ts");
    const application = shownApplication(await findApplication(database, id));
    const [heldEvents, secrets, signingKeys] = await Promise.all([
      countHeldEvents(database, id),
      listSecrets(database, id),
      listSigningKeys(database, id),
    ]);
    output.result({ ...application, heldEvents, secrets, signingKeys }, () =>
      [applicationText(application), secretTable(secrets), signingKeyTable(signingKeys)].join("\n\n"),
    );
  });
}

/** `application update` */
export async function update(id: string, options: ApplicationOptions, command: Command): Promise<void> {
  const { name, first, last, requireSecret, reuseAfter, signatureLifetime } = options;
  const webhookUrl = checkedUrl(options.webhookUrl, command);
  await withSession(command, async ({ database, output }) => {
    const { updateApplication } = await import("../operations/application-update.ts");
    const application = await updateApplication(database, id, {
      name,
      firstNumber: first,
      lastNumber: last,
      webhookUrl,
      requireSecret,
      reuseAfterSeconds: reuseAfter,
      signatureLifetimeSeconds: signatureLifetime,
    });
    output.result(application, () => applicationText(application));
  });
}

/** `application disable` and `application enable` */
export async function disable(id: string, disabled: boolean, command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const { setDisabled } = await import("../operations/applications.ts");
    const application = await setDisabled(database, id, disabled);
    output.result(application, () => `Application ${id} is ${shownState(application)}.`);
  });
}

/**
 * The URL if it may be called, kept as it was given; null for none, undefined when nothing was said.
 *
 * @throws UserError with the reason it may not be called
 */
function checkedUrl(text: string | false | undefined, command: Command): string | null | undefined {
  if (text === undefined) return undefined;
  if (text === "" || text === false) return null;
  const check = checkWebhookUrl(text, { local: commonOptions(command).env === undefined });
  if (!check.ok) throw new UserError(describeUrlRefusal(check.reason));
  return text;
}

const shownState = ({ disabledAt }: ShownApplication): string => (disabledAt === null ? "enabled" : "disabled");

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

function applicationText(application: ShownApplication): string {
  const { firstNumber, lastNumber, webhookUrl, webhookHeldAt, signatureLifetimeSeconds } = application;
  return `${bold(application.name)}

${fieldLines({
  "Application ID": application.applicationId,
  State: shownState(application),
  "Badge numbers": `${firstNumber} to ${lastNumber}`,
  "Webhook URL": webhookUrl ?? "none",
  Deliveries: webhookHeldAt === null ? undefined : `held since ${webhookHeldAt}`,
  "Invitations need the secret": application.requireSecret ? "yes" : "no",
  "Numbers rest for": `${application.reuseAfterSeconds} s`,
  "Signatures are valid for": signatureLifetimeSeconds === null ? "ever" : `${signatureLifetimeSeconds} s`,
  Created: application.createdAt ?? undefined,
  Disabled: application.disabledAt ?? undefined,
})}`;
}
