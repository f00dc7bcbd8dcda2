import { setTimeout as wait } from "node:timers/promises";
import { sql } from "drizzle-orm";
import * as z from "zod";
import { deployment as deploymentTable } from "../../shared/schema.ts";
import { describeError } from "../command-line/errors.ts";
import type { Session } from "../command-line/session.ts";
import { ADMIN, DEPLOY, shellWord } from "../command-line/shell.ts";
import { readDeployedRelease } from "../deploy/deployed-release.ts";
import type { Deployment } from "../deploy/deployment.ts";
import { lastTicks, tickNow } from "../deploy/first-tick.ts";
import { readReplication } from "../deploy/replication.ts";
import { type Check, failure, ok, warning } from "./checks.ts";
import { CRON_START_MINUTES } from "./data-checks.ts";

/**
 * Checks six facts that the platform's documentation leaves open, or that may not hold yet in a new account. The comment at
 * each check says what depends on the fact. Only the check of the batch writes, and its change is undone.
 *
 * @param waitSeconds how long to wait for a tick by cron
 */
export const firstDayChecks = (session: Session, deployment: Deployment, waitSeconds: number): Check[] => [
  { name: "A batch over D1's REST interface is one transaction", run: () => checkBatch(session) },
  { name: "Cron has started", run: () => checkCron(session, waitSeconds) },
  { name: "A message over HTTP reaches the Worker", run: () => checkMessage(session, deployment) },
  { name: "The objects sleep between two ticks", run: () => checkBilledTime(deployment) },
  { name: "D1 has replicas", run: () => checkReplicas(session, deployment) },
  { name: "D1 can be restored", run: () => checkTimeTravel(session, deployment) },
];

/** The script changes several rows as one batch. That this is a transaction is documented only for the binding. */
async function checkBatch({ homes }: Session) {
  const { database } = homes.first;
  const before = await readDeployedRelease(database);
  if (before === undefined) return failure("D1 has no release", `Run ${DEPLOY}.`);
  const refused = await database
    .run((orm) =>
      orm.batch([
        orm.update(deploymentTable).set({ deployedAt: before.deployedAt + 1 }),
        orm.run(sql`SELECT no_such_column FROM ${deploymentTable}`),
      ]),
    )
    .then(
      () => false,
      (error) => {
        if (describeError(error).includes("no such column")) return true;
        throw error;
      },
    );
  if (!refused)
    return failure(
      "a statement that must fail succeeded",
      "Report this: the tests' stand-in for the platform is wrong.",
    );
  const after = await readDeployedRelease(database);
  if (after?.deployedAt === before.deployedAt) return ok("a failing second statement undid the first");
  await database.run((orm) => orm.update(deploymentTable).set({ deployedAt: before.deployedAt }));
  return failure(
    "a failing second statement did not undo the first",
    `Report this, and create no application with this script until it is solved: a command that fails half-way may leave rows, which ${ADMIN} home check lists.`,
  );
}

/** Script commands, and the first tick of a deployment, reach the Worker this way. */
async function checkMessage({ homes }: Session, deployment: Deployment) {
  const took = await tickNow(deployment, homes);
  if (took !== null) return ok(`the clock ticked ${(took / 1000).toFixed(1)} s later`);
  return failure(
    "the clock did not tick within 30 s",
    "See the queue's consumer in the dashboard, and the token's right Account, Queues, Edit. Until this works, commands wait for the tick of the next minute.",
  );
}

/** Cron drives expiries and webhook retries, and detects a restore. */
async function checkCron({ homes }: Session, waitSeconds: number) {
  const { deployedAt = Date.now() } = (await readDeployedRelease(homes.first.database)) ?? {};
  const seconds = await secondsOfNextTick(homes, waitSeconds);
  if (seconds !== null) return ok(`the clock ticked by itself ${seconds} s later`);
  const minutes = Math.round((Date.now() - deployedAt) / 60_000);
  const detail = `no tick within ${waitSeconds} s, ${minutes} minutes after the deployment`;
  if (minutes < CRON_START_MINUTES)
    return warning(detail, `It takes up to ${CRON_START_MINUTES} minutes: check again after that.`);
  return failure(detail, `See the Worker's triggers in the dashboard; ${DEPLOY} sets them again.`);
}

/** Cron runs once a minute. */
export const TICK_WAIT_SECONDS = 75;

/** Waits for a tick by cron. @returns null when there was none */
async function secondsOfNextTick(homes: Session["homes"], waitSeconds: number): Promise<number | null> {
  const [before] = await lastTicks(homes);
  const startedAt = Date.now();
  for (let waited = 0; waited < waitSeconds; waited++) {
    await wait(1000);
    const [now] = await lastTicks(homes);
    if (now !== before) return Math.round((Date.now() - startedAt) / 1000);
  }
  return null;
}

const periods = z.object({
  viewer: z.object({
    accounts: z.tuple([
      z.object({
        durableObjectsPeriodicGroups: z.array(z.object({ sum: z.object({ activeTime: z.number() }) })),
      }),
    ]),
  }),
});

const HOUR_MILLISECONDS = 3_600_000;
/** An object that never sleeps is active for the whole hour. */
const MAX_ACTIVE_SHARE = 0.5;

/** An object that never sleeps is billed for every second: 331,776 GB-s a month, about $4. */
async function checkBilledTime(deployment: Deployment) {
  const since = new Date(Date.now() - HOUR_MILLISECONDS).toISOString();
  const data = await deployment.account.analyse(
    periods,
    `{ viewer { accounts(filter: { accountTag: "${deployment.account.id}" }) {
      durableObjectsPeriodicGroups(limit: 1000, filter: { datetime_geq: "${since}" }) { sum { activeTime } } } } }`,
  );
  const groups = data?.viewer.accounts[0].durableObjectsPeriodicGroups ?? [];
  if (groups.length === 0) {
    return warning(
      "no figures yet, or the token may not read them",
      "Check again in an hour, with the right Account, Account Analytics, Read; or see Durable Objects, Metrics in the dashboard: an idle HOME_SCHEDULER is active for seconds an hour.",
    );
  }
  // Microseconds.
  const seconds = Math.round(groups.reduce((sum, group) => sum + group.sum.activeTime, 0) / 1e6);
  const detail = `active for ${seconds} s within the last hour, all objects of the account together`;
  if (seconds < (MAX_ACTIVE_SHARE * HOUR_MILLISECONDS) / 1000) return ok(detail);
  return warning(detail, "Without traffic, that is too much: something keeps an object awake. Report this.");
}

/** Bookmarks make calls from far away fast only if D1 has replicas. */
async function checkReplicas({ homes }: Session, deployment: Deployment) {
  const modes = await homes.map(({ number }) => readReplication(deployment, number));
  if (modes.every((mode) => mode === "auto")) return ok("read replication is on");
  return warning(
    "read replication is off",
    `Run ${DEPLOY} without --no-replicas, if phones are far from the database.`,
  );
}

const bookmark = z.object({ bookmark: z.string() });

/** "Restore" in docs/operations.md depends on it. */
async function checkTimeTravel({ homes, backend }: Session, deployment: Deployment) {
  const found = await homes.map(({ number }) => {
    const id = deployment.home(number)?.database.database_id;
    return deployment.find(bookmark, `/d1/database/${id}/time_travel/bookmark`);
  });
  if (found.every((each) => each !== null)) return ok(`bookmark ${found[0]?.bookmark}`);
  const environment = "local" in backend ? "" : ` --env ${shellWord(backend.environment)}`;
  return failure("D1 gives no bookmark", `See npx wrangler d1 time-travel info DB${environment}.`);
}
