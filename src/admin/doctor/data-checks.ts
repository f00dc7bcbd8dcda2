import * as z from "zod";
import { MAX_COPY_AGE_SECONDS, RANGE_WARNING_PERCENTS } from "../../shared/limits.ts";
import { isoTime } from "../../shared/time.ts";
import { counted } from "../command-line/output.ts";
import { type Session, shownCommand } from "../command-line/session.ts";
import type { Homes } from "../platform/homes.ts";
import { missingMigrations } from "../platform/migrations.ts";
import { findNewest } from "../sealing-key/newest.ts";
import { countOldValues, listSealingKeys } from "../sealing-key/usage.ts";
import { broken, type Check, fine, look } from "./checks.ts";

/** An event that is due for longer is not waiting for its turn any more. */
const OVERDUE_MINUTES = 10;

/** Clocks that differ by more make fresh proofs look old. */
const MAX_SKEW_SECONDS = 30;

/** What the databases tell, locally and deployed alike. */
export function dataChecks(session: Session, deployCommand: string): Check[] {
  const { homes } = session;
  return [
    { name: "Migrations", run: () => checkMigrations(homes, deployCommand) },
    { name: "Sealing keys", run: () => checkSealingKeys(session) },
    { name: "Sweep", run: () => checkSweep(homes) },
    { name: "Clock", run: () => checkClock(homes) },
    { name: "Deliveries", run: () => checkDeliveries(session) },
    { name: "Number ranges", run: () => checkRanges(session) },
  ];
}

/** Rows of one statement in every home, with the home's number. */
async function askHomes<Row extends z.ZodType>(
  homes: Homes,
  row: Row,
  sql: string,
  ...parameters: (string | number)[]
): Promise<(z.output<Row> & { home: number })[]> {
  const rows = z.array(row);
  const found = await homes.everywhere(async ({ number, database }) => {
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
  const missing = await homes.everywhere(({ database }) => database.run((_, d1) => missingMigrations(d1)));
  const lacking = missing.flatMap((names, index) =>
    names.length === 0 ? [] : [`home ${homes.all[index]?.number} lacks ${names.join(", ")}`],
  );
  if (lacking.length > 0) return broken(lacking.join("; "), `Run ${deployCommand}.`);
  return fine(`all applied in ${counted(homes.all.length, "home")}`);
}

async function checkSealingKeys(session: Session) {
  const { homes } = session;
  const reseal = `Run ${shownCommand(session, "sealing-key reseal")}`;
  const { key, lacking } = await findNewest(homes);
  if (key === undefined) return broken("there is none", `Run ${shownCommand(session, "init")}.`);
  if (lacking.length > 0) {
    const numbers = lacking.map(({ number }) => number).join(", ");
    return broken(`home ${numbers} lacks version ${key.version}`, `${reseal}.`);
  }
  const old = await countOldValues(homes);
  if (old > 0) {
    const detail = `${counted(old, "value")} not sealed to version ${key.version} yet`;
    return look(detail, `${reseal}, which names what stays behind.`);
  }
  const versions = (await listSealingKeys(homes)).map(({ version }) => version);
  if (versions.length === 1) return fine(`version ${key.version}`);
  const spare = versions.filter((version) => version !== key.version);
  return look(
    `nothing needs version ${spare.join(", ")} any more`,
    `A restoration needs it for 31 days after the re-sealing; then run ${shownCommand(session, `sealing-key remove ${spare[0]}`)}.`,
  );
}

const ticked = z.object({ tickedAt: z.number().nullable() });

async function checkSweep(homes: Homes) {
  const clocks = await askHomes(homes, ticked, "SELECT (SELECT ticked_at FROM clock WHERE id = 1) AS tickedAt");
  const late = clocks.filter(
    ({ tickedAt }) => tickedAt === null || Date.now() - tickedAt > MAX_COPY_AGE_SECONDS * 1000,
  );
  if (late.length === 0) return fine("ran in every home within the last 90 seconds");
  const since = late.map(({ home, tickedAt }) =>
    tickedAt === null ? `never in home ${home}` : `in home ${home} last at ${isoTime(tickedAt)}`,
  );
  return broken(
    since.join("; "),
    "Locally: npm start. Deployed: see the Worker's cron trigger and its sweep-part-failed lines; npm run deploy sets the trigger again.",
  );
}

const d1Time = z.object({ now: z.number() });

async function checkClock(homes: Homes) {
  const before = Date.now();
  const times = await askHomes(homes, d1Time, "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now");
  const after = Date.now();
  const skew = Math.max(...times.map(({ now }) => Math.max(before - now, now - after, 0)));
  const seconds = Math.round(skew / 1000);
  if (seconds <= MAX_SKEW_SECONDS) return fine("this computer's and D1's agree");
  return look(
    `this computer's differs from D1's by ${seconds} s`,
    "Set this computer's clock: commands write times by it.",
  );
}

const deliveries = z.object({ overdue: z.number(), held: z.number(), exhausted: z.number() });
/** By the indexes of events that are not delivered, which are few. */
const COUNT_DELIVERIES = `
  SELECT
    (SELECT count(*) FROM webhook_event INDEXED BY webhook_event_due JOIN application ON application.id = application_id
      WHERE state = 'pending' AND due_at <= ?1 AND disabled_at IS NULL AND webhook_event.created_at <= ?1) AS overdue,
    count(*) FILTER (WHERE state = 'held') AS held, count(*) FILTER (WHERE state = 'exhausted') AS exhausted
  FROM webhook_event INDEXED BY webhook_event_stopped WHERE state IN ('exhausted', 'held')`;

async function checkDeliveries(session: Session) {
  const counts = await askHomes(session.homes, deliveries, COUNT_DELIVERIES, Date.now() - OVERDUE_MINUTES * 60_000);
  const sum = (name: "overdue" | "held" | "exhausted") => counts.reduce((total, each) => total + each[name], 0);
  const [overdue, held, exhausted] = [sum("overdue"), sum("held"), sum("exhausted")];
  if (overdue > 0) {
    return broken(
      `${counted(overdue, "event")} due for over ${OVERDUE_MINUTES} minutes`,
      "The queue or the sweep does not get on: see the checks of both, and the lines webhook-secret-unusable.",
    );
  }
  if (held + exhausted === 0) return fine("nothing waits");
  return look(
    `${held} held, ${exhausted} exhausted`,
    `Fix the receiver, then ${shownCommand(session, "webhook replay ID --all-exhausted")} or webhook test ID.`,
  );
}

const range = z.object({ id: z.string(), name: z.string(), used: z.number(), size: z.number() });
/** From where the application's object stands in its range: to count badges would take as long as there are badges. */
const COUNT_USED = `
  SELECT application.id, name, last_number - first_number + 1 AS size,
    (SELECT coalesce(sum(part.value ->> 'used'), 0) FROM application_head JOIN json_each(application_head.fresh) AS part
      WHERE application_head.application_id = application.id)
    - (SELECT count(*) FROM freed_number WHERE freed_number.application_id = application.id) AS used
  FROM application WHERE disabled_at IS NULL`;

async function checkRanges(session: Session) {
  const ranges = await askHomes(session.homes, range, COUNT_USED);
  const percentOf = ({ used, size }: z.output<typeof range>) => (used / size) * 100;
  const nearlyFull = ranges.filter((each) => percentOf(each) >= Math.min(...RANGE_WARNING_PERCENTS));
  if (nearlyFull.length === 0) return fine(counted(ranges.length, "application"));
  return look(
    nearlyFull.map((each) => `${each.id} (${each.name}): ${Math.floor(percentOf(each))} % used`).join("; "),
    `Make the range longer: ${shownCommand(session, "application update ID --last N")}.`,
  );
}
