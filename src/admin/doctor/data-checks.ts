import * as z from "zod";
import {
  HOME_WARNING_PERCENT,
  LOG_DAYS,
  MAX_DATABASE_BYTES,
  MAX_REPLICA_AGE_SECONDS,
  RANGE_WARNING_PERCENTS,
} from "../../shared/limits.ts";
import { DAY_MILLISECONDS, HOUR_MILLISECONDS, isoTime } from "../../shared/time.ts";
import { counted } from "../command-line/output.ts";
import { formatCommand, type Session } from "../command-line/session.ts";
import { lastTicks } from "../deploy/first-tick.ts";
import { readDeployedRelease } from "../deploy/release.ts";
import type { Homes } from "../platform/homes.ts";
import { missingMigrations } from "../platform/migrations.ts";
import { findNewest } from "../sealing-key/newest.ts";
import { countOldValues, listSealingKeys } from "../sealing-key/usage.ts";
import { type Check, failure, ok, warning } from "./checks.ts";

/** An event that is due for longer is stuck, not just waiting for its turn. */
const OVERDUE_MINUTES = 10;

/** Clocks that differ by more make fresh proofs look old. */
const MAX_SKEW_SECONDS = 30;

/** Checks of the databases, local and deployed alike. */
export function dataChecks(session: Session, deployCommand: string): Check[] {
  const { homes } = session;
  return [
    { name: "Migrations", run: () => checkMigrations(homes, deployCommand) },
    { name: "Sealing keys", run: () => checkSealingKeys(session) },
    { name: "Sweep", run: () => checkSweep(homes) },
    { name: "Clock", run: () => checkClock(homes) },
    { name: "Deliveries", run: () => checkDeliveries(session) },
    { name: "Number ranges", run: () => checkRanges(session) },
    { name: "New badges", run: () => checkHourBrakes(session) },
    { name: "Homes", run: () => checkHomeSizes(session) },
    { name: "Logs", run: () => checkLogs(session) },
  ];
}

/** Runs a statement in every home. @returns all rows, each with the number of its home */
async function queryHomes<Row extends z.ZodType>(
  homes: Homes,
  row: Row,
  sql: string,
  ...parameters: (string | number)[]
): Promise<(z.output<Row> & { home: number })[]> {
  const rows = z.array(row);
  const found = await homes.map(async ({ number, database }) => {
    const { results } = await database.run((_, d1) =>
      d1
        .prepare(sql)
        .bind(...parameters)
        .all(),
    );
    return rows.parse(results).map((each) => Object.assign({ home: number }, each));
  });
  return found.flat();
}

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
    `A restore of D1 needs it for 31 days after re-sealing; then run ${formatCommand(session, `sealing-key remove ${spare[0]}`)}.`,
  );
}

/** A new or changed cron trigger takes that long to start (Workers: Cron Triggers). */
export const CRON_START_MINUTES = 15;

async function checkSweep(homes: Homes) {
  const ticks = await lastTicks(homes);
  const late = homes.all.flatMap(({ number }, index) => {
    const tickedAt = ticks[index] ?? null;
    if (tickedAt !== null && Date.now() - tickedAt <= MAX_REPLICA_AGE_SECONDS * 1000) return [];
    return [tickedAt === null ? `never in home ${number}` : `in home ${number} last at ${isoTime(tickedAt)}`];
  });
  if (late.length === 0) return ok("ran in every home within the last 90 seconds");
  const deployed = await readDeployedRelease(homes.first.database);
  if (deployed !== undefined && Date.now() - deployed.deployedAt < CRON_START_MINUTES * 60_000) {
    return warning(
      late.join("; "),
      `A new cron trigger takes up to ${CRON_START_MINUTES} minutes to start: wait for it.`,
    );
  }
  return failure(
    late.join("; "),
    "Locally: npm start. Deployed: see the Worker's cron trigger and its sweep-task-failed lines; npm run deploy sets the trigger again.",
  );
}

const d1Time = z.object({ now: z.number() });

async function checkClock(homes: Homes) {
  const before = Date.now();
  const times = await queryHomes(homes, d1Time, "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now");
  const after = Date.now();
  const skew = Math.max(...times.map(({ now }) => Math.max(before - now, now - after, 0)));
  const seconds = Math.round(skew / 1000);
  if (seconds <= MAX_SKEW_SECONDS) return ok("this computer's and D1's agree");
  return warning(
    `this computer's differs from D1's by ${seconds} s`,
    "Set this computer's clock: commands write times by it.",
  );
}

const deliveries = z.object({ overdue: z.number(), held: z.number(), exhausted: z.number() });
/** Uses the indexes of undelivered events, which are few. */
const COUNT_DELIVERIES = `
  SELECT
    (SELECT count(*) FROM webhook_event INDEXED BY webhook_event_due JOIN application ON application.id = application_id
      WHERE state = 'pending' AND due_at <= ?1 AND disabled_at IS NULL AND webhook_event.created_at <= ?1) AS overdue,
    count(*) FILTER (WHERE state = 'held') AS held, count(*) FILTER (WHERE state = 'exhausted') AS exhausted
  FROM webhook_event INDEXED BY webhook_event_stopped WHERE state IN ('exhausted', 'held')`;

async function checkDeliveries(session: Session) {
  const counts = await queryHomes(session.homes, deliveries, COUNT_DELIVERIES, Date.now() - OVERDUE_MINUTES * 60_000);
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

const range = z.object({ id: z.string(), name: z.string(), used: z.number(), size: z.number() });
/** Computed from the allocator's counters, because counting badges would read them all. */
const COUNT_USED = `
  SELECT application.id, name, last_number - first_number + 1 AS size,
    (SELECT coalesce(sum(part.value ->> 'used'), 0) FROM application_head JOIN json_each(application_head.range_segments) AS part
      WHERE application_head.application_id = application.id)
    - (SELECT count(*) FROM freed_number WHERE freed_number.application_id = application.id) AS used
  FROM application WHERE disabled_at IS NULL`;

async function checkRanges(session: Session) {
  const ranges = await queryHomes(session.homes, range, COUNT_USED);
  const percentOf = ({ used, size }: z.output<typeof range>) => (used / size) * 100;
  const nearlyFull = ranges.filter((each) => percentOf(each) >= Math.min(...RANGE_WARNING_PERCENTS));
  if (nearlyFull.length === 0) return ok(counted(ranges.length, "application"));
  return warning(
    nearlyFull.map((each) => `${each.id} (${each.name}): ${Math.floor(percentOf(each))} % used`).join("; "),
    `Extend the range: ${formatCommand(session, "application update ID --last N")}.`,
  );
}

const brake = z.object({ id: z.string(), name: z.string(), limit: z.number() });
/** Applications that have used up an hour's fresh numbers (contract section 7). Hours count from 1970-01-01 UTC. */
const REACHED_BRAKES = `
  SELECT application.id, name, new_badges_per_hour AS "limit" FROM application
    JOIN application_head ON application_head.application_id = application.id
  WHERE disabled_at IS NULL AND hour = ?1 AND hour_used >= new_badges_per_hour`;

async function checkHourBrakes(session: Session) {
  const reached = await queryHomes(session.homes, brake, REACHED_BRAKES, Math.floor(Date.now() / HOUR_MILLISECONDS));
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
    `Create another home for new applications: ${formatCommand(session, "init --home N")}. If strangers fill it, see "How long a range withstands strangers" in docs/operations.md.`,
  );
}

const shortLog = z.object({ id: z.string(), name: z.string(), since: z.number() });
const SHORT_LOGS = `
  SELECT application.id, name, log_since AS since FROM application
    JOIN application_head ON application_head.application_id = application.id WHERE log_since > ?1`;

/** Allocators that had no room for 31 days of entries (contract section 21). */
async function checkLogs(session: Session) {
  const logs = await queryHomes(session.homes, shortLog, SHORT_LOGS, Date.now() - LOG_DAYS * DAY_MILLISECONDS);
  if (logs.length === 0) return ok(`every allocator keeps ${LOG_DAYS} days of its log`);
  return warning(
    logs.map(({ id, name, since }) => `${id} (${name}): since ${isoTime(since)} only`).join("; "),
    "There was no room for more. Restore D1 to no earlier moment: see Restore in docs/operations.md.",
  );
}
