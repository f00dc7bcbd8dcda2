import { LOG_DAYS, RANGE_WARNING_PERCENTS } from "../../shared/limits/allocator-limits.ts";
import { MAX_REPLICA_AGE_SECONDS } from "../../shared/limits/cache-limits.ts";
import { HOME_WARNING_PERCENT, MAX_DATABASE_BYTES } from "../../shared/limits/platform-limits.ts";
import { DAY_MILLISECONDS, HOUR_MILLISECONDS, isoTime } from "../../shared/time.ts";
import { counted } from "../command-line/output.ts";
import { formatCommand, type Session } from "../command-line/session.ts";
import { readDeployedRelease } from "../deploy/deployed-release.ts";
import { lastTicks } from "../deploy/first-tick.ts";
import type { Orm } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";
import { missingMigrations } from "../platform/migrations.ts";
import { findNewest } from "../sealing-key/newest.ts";
import { countOldValues, listSealingKeys } from "../sealing-key/usage.ts";
import { type Check, failure, ok, warning } from "./checks.ts";
import { countDeliveries, selectHourlyLimitsReached, selectRanges, selectShortLogs } from "./home-queries.ts";

/** An event that is due for longer is stuck, not just waiting for its turn. */
const OVERDUE_MINUTES = 10;

/** Clocks that differ by more make fresh proofs look old. */
const MAX_SKEW_SECONDS = 30;

/** Checks of the databases, local and deployed alike. They use D1's clock, because this computer's may be wrong. */
export function dataChecks(session: Session, deployCommand: string): Check[] {
  const { homes } = session;
  return [
    { name: "Migrations", run: () => checkMigrations(homes, deployCommand) },
    { name: "Sealing keys", run: () => checkSealingKeys(session) },
    { name: "Sweep", run: () => checkSweep(homes) },
    { name: "Clock", run: () => checkClock(homes) },
    { name: "Deliveries", run: () => checkDeliveries(session) },
    { name: "Number ranges", run: () => checkRanges(session) },
    { name: "New badges", run: () => checkHourlyLimits(session) },
    { name: "Homes", run: () => checkHomeSizes(session) },
    { name: "Logs", run: () => checkLogs(session) },
  ];
}

/** Runs a query in every home. @returns all rows */
const queryHomes = async <Row>(homes: Homes, query: (orm: Orm) => Promise<Row[]>): Promise<Row[]> =>
  (await homes.map(({ database }) => database.run(query))).flat();

async function checkMigrations(homes: Homes, deployCommand: string) {
  const missing = await homes.map(({ database }) => database.run((_, d1) => missingMigrations(d1)));
  const lacking = missing.flatMap((names, index) =>
    names.length === 0 ? [] : [`home ${homes.all[index]?.number} lacks ${names.join(", ")}`],
  );
  if (lacking.length > 0) return failure(lacking.join("; "), `Run ${deployCommand}.`);
  return ok(`all applied in ${counted(homes.all.length, "home")}`);
}

async function checkSealingKeys(session: Session) {
  const { homes } = session;
  const reseal = `Run ${formatCommand(session, "sealing-key reseal")}`;
  const { key, lacking } = await findNewest(homes);
  if (key === undefined) return failure("there is none", `Run ${formatCommand(session, "init")}.`);
  if (lacking.length > 0) {
    const numbers = lacking.map(({ number }) => number).join(", ");
    return failure(`home ${numbers} lacks version ${key.version}`, `${reseal}.`);
  }
  const old = await countOldValues(homes);
  if (old > 0) {
    const detail = `${counted(old, "value")} not sealed to version ${key.version} yet`;
    return warning(detail, `${reseal}, which names what stays behind.`);
  }
  const versions = (await listSealingKeys(homes)).map(({ version }) => version);
  if (versions.length === 1) return ok(`version ${key.version}`);
  const spare = versions.filter((version) => version !== key.version);
  return warning(
    `nothing needs version ${spare.join(", ")} any more`,
    `A restore of D1 needs it for 31 days after re-sealing, and an older backup as long as you keep it; then run ${formatCommand(session, `sealing-key remove ${spare[0]}`)}.`,
  );
}

/** A new or changed cron trigger takes that long to start (Workers: Cron Triggers). */
export const CRON_START_MINUTES = 15;

async function checkSweep(homes: Homes) {
  const [ticks, now] = await Promise.all([lastTicks(homes), homes.first.database.readClock()]);
  const late = homes.all.flatMap(({ number }, index) => {
    const tickedAt = ticks[index] ?? null;
    if (tickedAt !== null && now - tickedAt <= MAX_REPLICA_AGE_SECONDS * 1000) return [];
    return [tickedAt === null ? `never in home ${number}` : `in home ${number} last at ${isoTime(tickedAt)}`];
  });
  if (late.length === 0) return ok("ran in every home within the last 90 seconds");
  const deployed = await readDeployedRelease(homes.first.database);
  if (deployed !== undefined && now - deployed.deployedAt < CRON_START_MINUTES * 60_000) {
    return warning(
      late.join("; "),
      `A new cron trigger takes up to ${CRON_START_MINUTES} minutes to start: wait for it.`,
    );
  }
  return failure(
    late.join("; "),
    "Locally: npm start. Deployed: see the Worker's cron trigger, and its lines tick-failed, tick-task-failed and, after a restore, allocator-not-woken; npm run deploy sets the trigger again.",
  );
}

async function checkClock(homes: Homes) {
  const before = Date.now();
  const times = await homes.map(({ database }) => database.readClock());
  const after = Date.now();
  const skew = Math.max(...times.map((now) => Math.max(before - now, now - after, 0)));
  const seconds = Math.round(skew / 1000);
  if (seconds <= MAX_SKEW_SECONDS) return ok("this computer's and D1's agree");
  return warning(
    `this computer's differs from D1's by ${seconds} s`,
    "Set this computer's clock: commands write times by it.",
  );
}

async function checkDeliveries(session: Session) {
  const dueBefore = (await session.homes.first.database.readClock()) - OVERDUE_MINUTES * 60_000;
  const counts = await queryHomes(session.homes, (orm) => countDeliveries(orm, dueBefore));
  const sum = (name: "overdue" | "held" | "exhausted") => counts.reduce((total, each) => total + each[name], 0);
  const [overdue, held, exhausted] = [sum("overdue"), sum("held"), sum("exhausted")];
  if (overdue > 0) {
    return failure(
      `${counted(overdue, "event")} due for over ${OVERDUE_MINUTES} minutes`,
      "The queue or the sweep is stuck: see the checks of both, and the log lines webhook-secret-unusable.",
    );
  }
  if (held + exhausted === 0) return ok("none is waiting");
  return warning(
    `${held} held, ${exhausted} exhausted`,
    `Fix the receiver, then ${formatCommand(session, "webhook replay ID --all-exhausted")} or webhook test ID.`,
  );
}

async function checkRanges(session: Session) {
  const ranges = (await queryHomes(session.homes, selectRanges)).map(({ id, name, ...range }) => {
    const size = range.lastNumber - range.firstNumber + 1;
    const used = range.segments.reduce((sum, segment) => sum + segment.used, 0) - range.counted.freed;
    return { id, name, percent: (used / size) * 100 };
  });
  const nearlyFull = ranges.filter(({ percent }) => percent >= Math.min(...RANGE_WARNING_PERCENTS));
  if (nearlyFull.length === 0) return ok(counted(ranges.length, "application"));
  return warning(
    nearlyFull.map(({ id, name, percent }) => `${id} (${name}): ${Math.floor(percent)} % used`).join("; "),
    `Extend the range: ${formatCommand(session, "application update ID --last N")}. If the next numbers are another application's, create a further application for new devices.`,
  );
}

async function checkHourlyLimits(session: Session) {
  const hour = Math.floor((await session.homes.first.database.readClock()) / HOUR_MILLISECONDS);
  const reached = await queryHomes(session.homes, (orm) => selectHourlyLimitsReached(orm, hour));
  if (reached.length === 0) return ok("no application has used up this hour's");
  return warning(
    reached.map(({ id, name, limit }) => `${id} (${name}): all ${limit} of this hour are used`).join("; "),
    `If this is a roll-out: ${formatCommand(session, "application update ID --new-badges-per-hour N")}. If strangers do this: --user-issuer keeps them out.`,
  );
}

async function checkHomeSizes(session: Session) {
  const sizes = await session.homes.map(async ({ number, database }) => {
    // D1 reports the size of the database with every result (D1: Return object).
    const { meta } = await database.run((_, d1) => d1.prepare("SELECT 1").all());
    return { number, percent: Math.floor((meta.size_after / MAX_DATABASE_BYTES) * 100) };
  });
  const full = sizes.filter(({ percent }) => percent >= HOME_WARNING_PERCENT);
  const fullest = Math.max(...sizes.map(({ percent }) => percent));
  if (full.length === 0) return ok(`the fullest uses ${fullest} % of the 10 GB that D1 holds`);
  return warning(
    full.map(({ number, percent }) => `home ${number}: ${percent} % of the 10 GB that D1 holds`).join("; "),
    `Create another home for new applications: ${formatCommand(session, "init --home N --location L")}, or with --jurisdiction J. If strangers fill it, see "How long a range withstands strangers" in docs/operations.md.`,
  );
}

/** Allocators that had no room for 31 days of entries (contract section 21). */
async function checkLogs(session: Session) {
  const keptSince = (await session.homes.first.database.readClock()) - LOG_DAYS * DAY_MILLISECONDS;
  const logs = await queryHomes(session.homes, (orm) => selectShortLogs(orm, keptSince));
  if (logs.length === 0) return ok(`every allocator keeps ${LOG_DAYS} days of its log`);
  return warning(
    logs.map(({ id, name, since }) => `${id} (${name}): since ${isoTime(since)} only`).join("; "),
    "There was no room for more. Restore D1 to no earlier moment: see Restore in docs/operations.md.",
  );
}
