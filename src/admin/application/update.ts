import { and, eq, exists, gte, type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { application } from "../../shared/schema.ts";
import { countBadges } from "../badge/count.ts";
import { badgeNumber, onOneLine } from "../command-line/arguments.ts";
import { option, rawCommand } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { ADMIN } from "../command-line/shell.ts";
import { administrator, insertHistoryRow, newHistoryRow } from "../history/note.ts";
import { overlapsAnother } from "../number-range/range.ts";
import { registerNumbers } from "../number-range/register.ts";
import type { Homes } from "../platform/homes.ts";
import { type HomeSubmitter, homeSubmitter } from "../script-command/submit.ts";
import { makeDue } from "../webhook/event.ts";
import {
  APPLICATION,
  type ApplicationRow,
  applicationText,
  findApplication,
  type ShownApplication,
  selectApplication,
  toApplicationView,
  unknownApplication,
} from "./record.ts";
import { requiredProofText } from "./required-proof.ts";
import { readSettings, requiredSecretError, SETTING_OPTIONS, type Settings } from "./settings.ts";

export const updateCommand = rawCommand("update", {
  arguments: [APPLICATION],
  summary: "change an application",
  description:
    "Changes an application. Settings whose option is not given stay as they are.\n\n" +
    "A number range can only grow, and only at its end; the running service registers the numbers first. It can grow " +
    "beyond the card format that it was chosen for, so check the card formats that are printed. Setting the webhook " +
    "URL, even to its present value, sends the events that were held. --events replaces the whole list, for later " +
    "events only.",
  options: {
    name: option("--name <name>", "name for people", onOneLine),
    firstNumber: option("--first <n>", "accepted only if it stays the same", badgeNumber),
    lastNumber: option("--last <n>", "new last badge number of the range", badgeNumber),
    ...SETTING_OPTIONS,
  },
  examples: [
    "--last 1029999999",
    "--webhook-url https://app.example.com/hooks",
    "--no-webhook-url --require-secret",
    "--events badge:created,badge:revoked",
    "--invitation-link 'https://app.example.com/visit/{token}'",
    "--user-issuer https://login.example.com --user-audience club-app --observe",
    "--require-proof --bind-until 2027-01-31T18:00:00+01:00",
  ],
  async action({ environment, output, inSession }, id, { name, firstNumber, lastNumber, ...given }) {
    const changes = { ...(await readSettings(given, environment)), name, firstNumber, lastNumber };
    await inSession(async (session) => {
      const { homes, actor } = session;
      const application = await updateApplication(homes, homeSubmitter(session), id, changes, actor);
      if (!changes.requireProof) return output.result(application, () => applicationText(application));
      const { unbound: unboundBadges } = await countBadges(homes.databaseFor(id), application);
      output.result({ ...application, unboundBadges }, () =>
        [applicationText(application), requiredProofText(application, unboundBadges)].join("\n\n"),
      );
    });
  },
});

/**
 * Changes an application in one transaction, or changes nothing if the range cannot grow that far. New numbers are
 * registered first. After a crash in between they stay registered for the application, and the same command takes them.
 *
 * @param changes undefined leaves a value as it is; a webhook URL, even the present one, releases held deliveries
 * @throws UserError when no option is given, or when the range cannot change like this
 */
export async function updateApplication(
  homes: Homes,
  submit: HomeSubmitter,
  id: ApplicationId,
  changes: Settings,
  actor = administrator(),
): Promise<ShownApplication> {
  const database = homes.databaseFor(id);
  if (Object.values(changes).every((value) => value === undefined)) {
    throw new UserError(`Nothing to change: give at least one option, see ${ADMIN} application update --help.`);
  }
  const { lastNumber: last } = changes;
  const dropsSecret = changes.requireSecret === false && changes.userIssuer === undefined;
  if (last !== undefined || dropsSecret) {
    const before = await findApplication(database, id);
    if (dropsSecret && before.userIssuer !== null) throw requiredSecretError();
    assertGrows(before, changes);
    const isMore = last !== undefined && last > before.lastNumber;
    if (isMore) await registerNumbers(homes, submit, id, { range: { first: before.firstNumber, last } });
  }
  const changed = Object.entries(changes).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const historyRow = await newHistoryRow(database, id, actor, { action: "application:updated", detail: { changed } });
  const updateCondition = and(eq(application.id, id), rangeCondition(id, changes));
  const [, updated, , [row]] = await database.run((orm) =>
    orm.batch([
      insertHistoryRow(orm, historyRow, exists(orm.select().from(application).where(updateCondition))),
      orm.update(application).set(newValues(changes)).where(updateCondition),
      makeDue(orm, id, "held", releasedCondition(id, changes)),
      selectApplication(orm, id),
    ]),
  );
  if (row === undefined) throw unknownApplication(id);
  if (updated.meta.changes === 0) {
    assertGrows(row, changes);
    throw new UserError(`Another application of this home has some of these numbers: see ${ADMIN} home check.`);
  }
  return toApplicationView(row);
}

function newValues({ firstNumber: _unchanged, webhookUrl, ...plain }: Settings) {
  // --first alone changes nothing, but an UPDATE must set something: the ID, to itself.
  return { id: application.id, ...plain, ...(webhookUrl !== undefined && { webhookUrl, webhookHeldAt: null }) };
}

function rangeCondition(id: ApplicationId, { firstNumber, lastNumber }: Settings): SQL | undefined {
  const sameFirst = firstNumber === undefined ? undefined : eq(application.firstNumber, firstNumber);
  if (lastNumber === undefined) return sameFirst;
  const first = sql`${application.firstNumber}`;
  const grows = sql`${application.lastNumber} <= ${lastNumber}`;
  return and(sameFirst, grows, sql`NOT ${overlapsAnother(first, sql`${lastNumber}`, id)}`);
}

/** Whether the update that precedes this in the batch has set the URL. */
function releasedCondition(id: ApplicationId, { webhookUrl, lastNumber }: Settings): SQL {
  if (webhookUrl === undefined || webhookUrl === null) return sql`false`;
  const isSet = and(
    eq(application.id, id),
    eq(application.webhookUrl, webhookUrl),
    gte(application.lastNumber, lastNumber ?? 0),
  );
  return sql`EXISTS (SELECT 1 FROM ${application} WHERE ${isSet} AND ${application.webhookHeldAt} IS NULL)`;
}

/** @throws UserError when the range's start would change, or its end would be lower */
function assertGrows({ firstNumber, lastNumber }: ApplicationRow, changes: Settings): void {
  if (changes.firstNumber !== undefined && changes.firstNumber !== firstNumber) {
    throw new UserError(`The range starts at ${firstNumber}, which cannot change: leave out --first.`);
  }
  if (changes.lastNumber !== undefined && changes.lastNumber < lastNumber) {
    throw new UserError(`The range ends at ${lastNumber} and can only grow: give a larger --last.`);
  }
}
