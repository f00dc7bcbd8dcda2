import { setTimeout as wait } from "node:timers/promises";
import { sql } from "drizzle-orm";
import * as z from "zod";
import { deployment as deploymentTable } from "../../shared/schema.ts";
import type { Session } from "../command-line/session.ts";
import { ADMIN, DEPLOY, shellWord } from "../command-line/shell.ts";
import type { Deployment } from "../deploy/deployment.ts";
import { lastTicks, tickNow } from "../deploy/first-tick.ts";
import { readDeployedRelease } from "../deploy/release.ts";
import { readReplication } from "../deploy/replication.ts";
import { broken, type Check, fine, look } from "./checks.ts";
import { CRON_START_MINUTES } from "./data-checks.ts";

/**
 * Six facts that the platform's documentation leaves open, or that a new account may not have yet. Each check says what rests on
 * the fact. They run one after the other; only the batch writes, and that is undone.
 *
 * @param waitSeconds how long the clock may take to tick by itself
 */
export const firstDayChecks = (session: Session, deployment: Deployment, waitSeconds: number): Check[] => [
  { name: "A batch over D1's REST interface is one transaction", run: () => checkBatch(session) },
  { name: "Cron has started", run: () => checkCron(session, waitSeconds) },
  { name: "A message over HTTP reaches the Worker", run: () => checkMessage(session, deployment) },
  { name: "The objects sleep between two ticks", run: () => checkBilledTime(deployment) },
  { name: "D1 has replicas", run: () => checkReplicas(session, deployment) },
  { name: "D1 can be restored", run: () => checkTimeTravel(session, deployment) },
];

/** The script's changes of several rows (a range with its application, say) are batches (documented for the binding alone). */
async function checkBatch({ homes }: Session) {
  const { database } = homes.first;
  const before = await readDeployedRelease(database);
  if (before === undefined) return broken("D1 has no release", `Run ${DEPLOY}.`);
  const refused = await database
    .run((orm) =>
      orm.batch([
        orm.update(deploymentTable).set({ deployedAt: before.deployedAt + 1 }),
        orm.run(sql`SELECT no_such_column FROM ${deploymentTable}`),
      ]),
    )
    .then(
      () => false,
      () => true,
    );
  if (!refused)
    return broken("a statement that cannot succeed did", "Report this: the stand-in of the tests is wrong.");
  const after = await readDeployedRelease(database);
  if (after?.deployedAt === before.deployedAt) return fine("a failing second statement undid the first");
  await database.run((orm) => orm.update(deploymentTable).set({ deployedAt: before.deployedAt }));
  return broken(
    "a failing second statement left the first done",
    `Create no application with this script until that is solved, and report it: a command that fails half-way may leave rows, which ${ADMIN} home check lists.`,
  );
}

/** Commands of the script, and the first tick of a deployment, reach the Worker this way. */
async function checkMessage({ homes }: Session, deployment: Deployment) {
  const took = await tickNow(deployment, homes);
  if (took !== null) return fine(`the clock ticked ${(took / 1000).toFixed(1)} s later`);
  return broken(
    "the clock did not tick within 30 s",
    "See the queue's consumer in the dashboard, and the token's right Account, Queues, Edit. Without it commands wait for the next minute's tick.",
  );
}

/** Expiries, retries of webhooks and the notice of a restoration come by it. */
async function checkCron({ homes }: Session, waitSeconds: number) {
  const { deployedAt = Date.now() } = (await readDeployedRelease(homes.first.database)) ?? {};
  const seconds = await secondsOfNextTick(homes, waitSeconds);
  if (seconds !== null) return fine(`the clock ticked by itself ${seconds} s later`);
  const minutes = Math.round((Date.now() - deployedAt) / 60_000);
  const detail = `no tick within ${waitSeconds} s, ${minutes} minutes after the deployment`;
  if (minutes < CRON_START_MINUTES)
    return look(detail, `It takes up to ${CRON_START_MINUTES} minutes: check again then.`);
  return broken(detail, `See the Worker's triggers in the dashboard; ${DEPLOY} sets them again.`);
}

/** Cron comes once a minute. */
export const TICK_WAIT_SECONDS = 75;

/** Waits for a tick that nobody has asked for. @returns null when none came */
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
/** One object that never sleeps is active for all of the hour. */
const MAX_ACTIVE_SHARE = 0.5;

/** An object that something keeps awake is billed for every second: 331,776 GB-s a month, some $4, for each. */
async function checkBilledTime(deployment: Deployment) {
  const since = new Date(Date.now() - HOUR_MILLISECONDS).toISOString();
  const data = await deployment.account.analyse(
    periods,
    `{ viewer { accounts(filter: { accountTag: "${deployment.account.id}" }) {
      durableObjectsPeriodicGroups(limit: 1000, filter: { datetime_geq: "${since}" }) { sum { activeTime } } } } }`,
  );
  const groups = data?.viewer.accounts[0].durableObjectsPeriodicGroups ?? [];
  if (groups.length === 0) {
    return look(
      "no figures yet, or the token may not read them",
      "Check again in an hour, with the right Account, Account Analytics, Read; or see Durable Objects, Metrics in the dashboard: an idle HOME_SCHEDULER is active for seconds an hour.",
    );
  }
  // Microseconds.
  const seconds = Math.round(groups.reduce((sum, group) => sum + group.sum.activeTime, 0) / 1e6);
  const detail = `active for ${seconds} s within the last hour, all objects of the account together`;
  if (seconds < (MAX_ACTIVE_SHARE * HOUR_MILLISECONDS) / 1000) return fine(detail);
  return look(detail, "Without traffic that is too much: something keeps an object awake. Report it.");
}

/** Bookmarks make calls from far away quick only if D1 has replicas (contract section 16). */
async function checkReplicas({ homes }: Session, deployment: Deployment) {
  const modes = await homes.map(({ number }) => readReplication(deployment, number));
  if (modes.every((mode) => mode === "auto")) return fine("read replication is on");
  return look("read replication is off", `Run ${DEPLOY} without --no-replicas, if phones are far from the database.`);
}

const bookmark = z.object({ bookmark: z.string() });

/** The restore page of docs/operations.md rests on it. */
async function checkTimeTravel({ homes, backend }: Session, deployment: Deployment) {
  const found = await homes.map(({ number }) => {
    const id = deployment.home(number)?.database.database_id;
    return deployment.find(bookmark, `/d1/database/${id}/time_travel/bookmark`);
  });
  if (found.every((each) => each !== null)) return fine(`bookmark ${found[0]?.bookmark}`);
  const environment = "local" in backend ? "" : ` --env ${shellWord(backend.environment)}`;
  return broken("D1 gives no bookmark", `See npx wrangler d1 time-travel info DB${environment}.`);
}
