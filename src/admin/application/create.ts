import { eq } from "drizzle-orm";
import { homeOf } from "../../shared/homes.ts";
import { newApplicationId } from "../../shared/identifiers.ts";
import { application, sealingKey } from "../../shared/schema.ts";
import type { Registration } from "../../shared/script-commands.ts";
import { homeNumber, onOneLine } from "../command-line/arguments.ts";
import { option, rawCommand, requiredOption } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { bold, fieldLines } from "../command-line/output.ts";
import { ADMIN } from "../command-line/shell.ts";
import { formatRange, rangeOf } from "../number-range/range.ts";
import { RANGE_OPTIONS, wantedNumbers } from "../number-range/range-options.ts";
import { registerNumbers } from "../number-range/register.ts";
import type { Homes } from "../platform/homes.ts";
import { type HomeSubmitter, homeSubmitter } from "../script-command/submit.ts";
import { newestSealer } from "../sealing-key/newest.ts";
import { insertRows, type Material, makeMaterial, type NewApplication } from "./rows.ts";
import { readSettings, SETTING_OPTIONS } from "./settings.ts";

export const createCommand = rawCommand("create", {
  summary: "create an application and print its ID and secret",
  description:
    "Creates an application and prints its ID and secret.\n\n" +
    "The secret is not shown again: it cannot be read back. Without --first and --last the application gets the " +
    "next free block of 10,000,000 numbers from 1,000,000,000 on. Ranges of applications never overlap: the running " +
    "service registers them.\n\n" +
    "The application stays in its home for ever, and its ID shows which: app2_… is in home 2. See home list.\n\n" +
    "--format makes every number fit a card format. h10301 (26 bits), h10304 (37 bits) and corporate1000 (35 bits) " +
    "take the numbers of one facility or company code, which --first and --last may only narrow. h10302 (37 bits) " +
    "takes --first and --last, or the next free block. The format chooses the range and is not stored.",
  options: {
    name: requiredOption("--name <name>", "name for people", onOneLine),
    home: option("--home <n>", "the application's home", homeNumber, 1),
    ...RANGE_OPTIONS,
    ...SETTING_OPTIONS,
  },
  examples: [
    "--name 'Head office'",
    "--name Visitors --first 5000 --last 5999 --json",
    "--name 'Paris office' --home 2",
    "--name Gate --format h10301 --facility 123",
    "--name App --webhook-url https://app.example.com/hooks",
    "--name Gym --events badge:created,badge:revoked",
    "--name Club --user-issuer https://login.example.com --user-audience club-app",
  ],
  async action({ environment, output, inSession }, { name, home, format, facility, company, first, last, ...given }) {
    const numbers = wantedNumbers({ format, facility, company, first, last });
    const wanted = { ...(await readSettings(given, environment)), ...numbers, name, home };
    await inSession(async (session) => {
      const created = await createApplication(session.homes, homeSubmitter(session), wanted);
      output.result(created, () => createdText(created));
    }, true);
  },
});

function createdText(created: Awaited<ReturnType<typeof createApplication>>): string {
  return `${bold(`Created application "${created.name}".`)}

${fieldLines({
  "Application ID": created.applicationId,
  "Application secret": created.applicationSecret,
  "Badge numbers": `${created.firstNumber} to ${created.lastNumber}`,
  "Webhook URL": created.webhookUrl ?? "none",
})}

Store the secret now: it is not shown again.`;
}

/**
 * Creates an application with its first secret, signing key and root key. Its numbers are registered first; then all its
 * rows are inserted in its home, in one transaction.
 *
 * A crash in between leaves an unused registration, which `home check` reports.
 *
 * @throws UserError when the range is not free, or there is no such home
 */
export async function createApplication(homes: Homes, submit: HomeSubmitter, wanted: NewApplication) {
  const { database } = homes.get(wanted.home ?? 1);
  const applicationId = wanted.credentials?.applicationId ?? newApplicationId(wanted.home);
  // Fails without a sealing key, before any numbers are registered.
  await newestSealer(database);
  const registration = await registerNumbers(homes, submit, applicationId, wanted);
  for (;;) {
    const material = await makeMaterial(await newestSealer(database), applicationId, wanted);
    const [, , , , [created]] = await database.run((orm) =>
      orm.batch([
        ...insertRows(orm, wanted, material, registration),
        orm.select().from(application).where(eq(application.id, applicationId)),
      ]),
    );
    if (created === undefined) {
      await assertMayRepeat(homes, registration, material);
      continue;
    }
    const { name, firstNumber, lastNumber, webhookUrl } = created;
    // Key by key as in contract section 10.
    return { applicationId, applicationSecret: material.secret.secret, name, firstNumber, lastNumber, webhookUrl };
  }
}

/** @throws UserError unless the insert failed because the sealing key was replaced meanwhile */
async function assertMayRepeat(homes: Homes, registration: Registration, { sealingVersion }: Material): Promise<void> {
  const { database } = homes.get(homeOf(registration.applicationId));
  const stillExists = await database.run((orm) => orm.$count(sealingKey, eq(sealingKey.version, sealingVersion)));
  if (stillExists === 0) return;
  const numbers = formatRange(rangeOf(registration));
  throw new UserError(`Numbers ${numbers} were registered, but not used: ${ADMIN} home check shows what they overlap.`);
}
