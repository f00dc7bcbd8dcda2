import { setTimeout as wait } from "node:timers/promises";
import { lt, max, sql } from "drizzle-orm";
import { application, applicationSecret, sealingKey, signingKey } from "../../shared/schema.ts";
import { seconds } from "../command-line/arguments.ts";
import { command, option } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { counted } from "../command-line/output.ts";
import { ADMIN } from "../command-line/shell.ts";
import type { Database } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";
import { publishNewestEverywhere } from "./newest.ts";
import { countOldValues, valuesStillNeed } from "./usage.ts";

const POLL_MILLISECONDS = 1000;

/** How many values are named when there is no more progress. */
const MAX_NAMED_VALUES = 5;

export const resealCommand = command("reseal", {
  summary: "watch the service re-seal everything to the newest key",
  description:
    "Shows how many values still need an older key, until there are none. The running service re-seals them, since " +
    "only it can open them: interrupting this command stops nothing, and it can be run again.",
  options: { wait: option("--wait <seconds>", "give up after this time without a change", seconds, 150) },
  examples: ["--env production"],
  async work({ homes, output }, { wait: waitSeconds }) {
    await watchResealing(homes, (left) => output.note(`${counted(left, "value")} left.`), waitSeconds * 1000);
    return { left: 0 };
  },
  text: (_, { backend }) =>
    `Everything is sealed to the newest key.${"local" in backend ? "" : ` A restore of D1 needs the others for 31 days. After that: ${ADMIN} sealing-key remove VERSION.`}`,
});

/**
 * Waits until the service's sweep has re-sealed everything to the newest key, which only the Worker can do.
 *
 * @param progress is called with the number of values left, whenever it changes
 * @param waitMilliseconds how long the number may stay the same
 * @throws UserError that names values that are left, when the number does not change for that long
 */
export async function watchResealing(
  homes: Homes,
  progress: (left: number) => void,
  waitMilliseconds: number,
): Promise<void> {
  // The sweep re-seals a home's values to the newest key that the home has.
  await publishNewestEverywhere(homes);
  let left = await countOldValues(homes);
  let changedAt = Date.now();
  let isServiceSeen = false;
  progress(left);
  while (left > 0) {
    if (Date.now() - changedAt >= waitMilliseconds) throw new UserError(await stuckLine(homes, left, isServiceSeen));
    await wait(POLL_MILLISECONDS);
    const now = await countOldValues(homes);
    if (now === left) continue;
    isServiceSeen ||= now < left;
    left = now;
    changedAt = Date.now();
    progress(left);
  }
}

/** Only the Worker knows whether a value opens: from here, one that it skips looks like one it has not reached yet. */
async function stuckLine(homes: Homes, left: number, isServiceSeen: boolean): Promise<string> {
  const named = (await homes.map(({ database }) => nameOldValues(database))).flat().slice(0, MAX_NAMED_VALUES);
  const others = left > named.length ? ` and ${left - named.length} more` : "";
  const seeLog = "the service's log says why (value-not-resealed)";
  const advice = isServiceSeen
    ? `The service re-sealed the others but cannot open these: ${seeLog}.`
    : `Start the service, then run this again. If it is running, it cannot open them, and ${seeLog}.`;
  return `${valuesStillNeed(left)} an older sealing key: ${named.join(", ")}${others}. ${advice}`;
}

/** Names of every kind of sealed value. */
const NAMES = [
  {
    table: applicationSecret,
    name: sql<string>`'secret ' || ${applicationSecret.id} || ' of ' || ${applicationSecret.applicationId}`,
  },
  {
    table: signingKey,
    name: sql<string>`'signing key ' || ${signingKey.kid} || ' of ' || ${signingKey.applicationId}`,
  },
  { table: application, name: sql<string>`'root key of ' || ${application.id}` },
];

/** Names values of one home that are not sealed to the newest key. */
async function nameOldValues(database: Database): Promise<string[]> {
  const found = await Promise.all(
    NAMES.map(({ table, name }) =>
      database.run((orm) =>
        orm
          .select({ name })
          .from(table)
          .where(lt(table.sealingVersion, orm.select({ version: max(sealingKey.version) }).from(sealingKey)))
          .orderBy(table.sealingVersion)
          .limit(MAX_NAMED_VALUES),
      ),
    ),
  );
  return found.flat().map(({ name }) => name);
}
