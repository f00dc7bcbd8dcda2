import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare, type V4WorkerOptions } from "miniflare";
import { z } from "zod";
import { createApplication } from "../../../src/admin/application/create.ts";
import { Database } from "../../../src/admin/platform/database.ts";
import { Homes } from "../../../src/admin/platform/homes.ts";
import { migrate } from "../../../src/admin/platform/migrations.ts";
import { PROJECT, WRANGLER_CONFIG } from "../../../src/admin/platform/paths.ts";
import { loadWrangler, runWrangler } from "../../../src/admin/platform/wrangler.ts";
import { plainHomeSubmitter } from "../../../src/admin/script-command/submit.ts";
import { RATE_LIMIT_WINDOW_SECONDS } from "../../../src/shared/limits/platform-limits.ts";
import { sealingKey } from "../../../src/shared/schema.ts";
import { generateSealingKey } from "../../../src/shared/sealing.ts";
import { RegisterInProcess } from "../../node/support/register.ts";
import { note } from "../command-line.ts";

const WORKERS = join(PROJECT, "test/long-runs/bench/workers");

const ENTRIES = {
  service: join(PROJECT, "src/worker/index.ts"),
  floor: join(WORKERS, "floor.ts"),
  /** The floor a second time: what it differs from the floor is noise. */
  twin: join(WORKERS, "floor.ts"),
  peer: join(WORKERS, "peer.ts"),
};

export type SideName = keyof typeof ENTRIES;

/** A Worker that runs in a workerd of its own, with a state of its own on disk. */
export type Side = Awaited<ReturnType<typeof start>>;

interface Running {
  /** Whether a driver calls it in its own isolate (workers/own-cost-driver.ts). */
  isDriven?: boolean;
  /** Whether it consumes its queue. */
  consumes?: boolean;
}

/** Builds and starts these sides, lets `work` use them, and stops them, whatever happens. */
export async function withSides(
  names: readonly SideName[],
  running: Running,
  work: (sides: readonly Side[]) => Promise<void>,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "badge-bench-"));
  const started: Miniflare[] = [];
  const clean = async () => {
    await Promise.allSettled(started.map((miniflare) => miniflare.dispose()));
    rmSync(directory, { recursive: true, force: true });
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void clean().finally(() => process.exit(1)));
  }
  try {
    note("Building the Workers and starting them …");
    const sides: Side[] = [];
    for (const name of names) sides.push(await start(name, join(directory, name), running, started));
    await work(sides);
  } finally {
    await clean();
  }
}

/** Builds a side's Worker as the service is deployed, and starts it with the bindings of wrangler.toml and with its tables. */
async function start(name: SideName, directory: string, running: Running, started: Miniflare[]) {
  mkdirSync(directory, { recursive: true });
  const entry = running.isDriven ? writeDriven(ENTRIES[name], join(directory, "driven.ts")) : ENTRIES[name];
  const { privateKey, publicKey } = await generateSealingKey();
  const worker = await buildWorker(entry, join(directory, "worker"), privateKey);
  const pidFile = discardOutput(directory);
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      ...worker,
      name,
      unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
      resourcePersistencePath: join(directory, "state"),
      log: new Log(LogLevel.WARN),
      logRequests: false,
      cf: false,
      telemetry: { enabled: false },
      ...(!running.consumes && { queueConsumers: {} }),
    }),
  );
  started.push(miniflare);
  const { port } = await miniflare.unsafeGetDirectURL(name);
  const home = async (number: number, binding: string) => ({
    ...{ number, place: null },
    database: new Database(await miniflare.getD1Database(binding)),
  });
  const homes = new Homes([await home(1, "DB"), await home(2, "DB_2")]);
  const peerTables = loadWrangler().unstable_splitSqlQuery(readFileSync(join(WORKERS, "peer.sql"), "utf8"));
  // As a deployment makes them, with the first sealing key.
  await homes.map(({ database }) =>
    database.run(async (orm, d1) => {
      await migrate(d1, loadWrangler());
      await orm.insert(sealingKey).values({ version: 1, publicKey, createdAt: Date.now() });
      await d1.batch(peerTables.map((statement) => d1.prepare(statement)));
    }),
  );
  return {
    name,
    /** Of workerd itself: nothing stands between the load generator and the Worker. */
    port: Number(port),
    homes,
    /** Registers number ranges: nothing else does while the sides are measured. */
    submit: plainHomeSubmitter({ homes, wake: new RegisterInProcess(homes).wake }),
    cpuMilliseconds: () => cpuMilliseconds(pidFile),
  };
}

/** Rate limits are asked and never refuse: the load comes from few devices and one address. */
const UNREACHED = { limit: 1_000_000_000, period: RATE_LIMIT_WINDOW_SECONDS };

/** Builds a Worker with the bindings of wrangler.toml. @returns what miniflare needs to run it, but its name */
async function buildWorker(entry: string, rootPath: string, privateKey: string): Promise<V4WorkerOptions> {
  // wrangler insists on the folder of static assets, whether it has files or not.
  for (const folder of [join(PROJECT, "dist/assets"), rootPath]) mkdirSync(folder, { recursive: true });
  await runWrangler(["deploy", entry, "--dry-run", "--outdir", rootPath, "--config", WRANGLER_CONFIG, "--env", ""]);
  const { workerOptions } = loadWrangler().unstable_getMiniflareWorkerOptions(WRANGLER_CONFIG);
  const { modulesRules: _, assets: __, ratelimits, ...options } = workerOptions;
  const limits = Object.keys(ratelimits ?? {}).map((name) => [name, { namespace_id: name, simple: UNREACHED }]);
  // The bundle imports the migrations of an allocator's tables.
  const migrations = readdirSync(rootPath).filter((file) => file.endsWith(".sql"));
  return {
    ...options,
    ...{ rootPath, modulesRoot: rootPath },
    modules: [
      { type: "ESModule", path: join(rootPath, `${basename(entry, ".ts")}.js`) },
      ...migrations.map((file) => ({ type: "Text" as const, path: join(rootPath, file) })),
    ],
    bindings: { ...z.record(z.string(), z.string()).parse(options.bindings), SEALING_KEY_1: privateKey },
    ratelimits: Object.fromEntries(limits),
  };
}

/** A Worker that a driver calls in its own isolate. @returns the path of the file */
function writeDriven(worker: string, path: string): string {
  const [from, driver] = [worker, join(WORKERS, "own-cost-driver.ts")].map((module) => JSON.stringify(module));
  const imports = `import worker from ${from};\nimport { driverOf } from ${driver};\n`;
  writeFileSync(path, `${imports}export * from ${from};\nexport default driverOf(worker.fetch);\n`);
  return path;
}

/** An application as its clients know it. */
export type BenchApplication = Awaited<ReturnType<typeof makeApplication>>;

/** Badges that every application has before anything is measured: an empty table would hide what grows with it. */
const OLD_BADGES = 2000;
export const METADATA = { deviceModel: "Pixel 9", os: "Android", osVersion: "16", sdkVersion: "3.2.1" };
/** In no application's range, so that none of their numbers is handed out again. */
let nextOldNumber = 500_000_000;
const INSERT_BADGES = `
  WITH RECURSIVE places (place) AS (SELECT 1 UNION ALL SELECT place + 1 FROM places WHERE place < ${OLD_BADGES})
  INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id, ordinal, login_sequence, issued_at,
    change, changed_at)
  SELECT ?1 + place, ?2, 'old-device-' || place, 'old-user-' || place, ?3, 1, 'evt_' || place, place, 1, ?4, place, ?4
  FROM places`;
/** Before the allocator has copied its application's rows, so that the next badge comes after them. */
const COUNT_BADGES = `UPDATE application_head SET last_ordinal = ${OLD_BADGES}, last_change = ${OLD_BADGES},
  statistics = json_set(statistics, '$[0][0]', ${OLD_BADGES}) WHERE application_id = ?1`;
const INSERT_PEER_BADGES = `INSERT INTO peer_badge
  SELECT number, application_id, device, user_id, metadata, issued_at FROM badge WHERE application_id = ?1`;
const INSERT_PEER_APPLICATION = `INSERT INTO peer_application
  SELECT id, ?2, webhook_url, first_number FROM application WHERE id = ?1`;

/** Makes the same rows on every side. */
export async function makeApplication({ homes, submit, port }: Side, webhookUrl: string | null, statusList = false) {
  const created = await createApplication(homes, submit, { name: "Benchmark", webhookUrl, newBadgesPerHour: null });
  const { applicationId: id, applicationSecret: secret } = created;
  nextOldNumber += OLD_BADGES;
  const inserts = [
    [INSERT_BADGES, nextOldNumber, id, JSON.stringify(METADATA), Date.now()],
    [COUNT_BADGES, id],
    // Before the first call: an isolate keeps an application's settings for a while.
    ["UPDATE application SET status_list = ?2 WHERE id = ?1", id, Number(statusList)],
    [INSERT_PEER_BADGES, id],
    [INSERT_PEER_APPLICATION, id, secret],
  ] as const;
  await homes
    .databaseFor(id)
    .run((_, d1) => d1.batch(inserts.map(([sql, ...values]) => d1.prepare(sql).bind(...values))));
  await awaitCopy(port, id);
  return { id, secret };
}

/** Until the allocator has copied those badges: before, it responds 503. The peer has none, and responds 404. */
async function awaitCopy(port: number, applicationId: string): Promise<void> {
  const headers = { applicationid: applicationId, udid: "first-device", "content-type": "application/json" };
  const body = JSON.stringify({ expiresAt: new Date(Date.now() + 24 * 3600 * 1000).toISOString() });
  for (let call = 0; call < 20; call++) {
    const { status } = await fetch(`http://127.0.0.1:${port}/v1/invitation`, { method: "POST", headers, body });
    if (status === 201 || status === 404) return;
    await wait(250);
  }
  throw new Error("an allocator did not copy its application's badges");
}

/**
 * Makes miniflare run workerd with its standard output discarded: through the usual pipe this process would parse every
 * log line of a Worker, on time that belongs to the load generator.
 *
 * @returns the file that will hold workerd's process ID
 */
function discardOutput(directory: string): string {
  const pidFile = join(directory, "pid");
  const script = join(directory, "workerd.sh");
  const workerd: { default: string } = createRequire(createRequire(import.meta.url).resolve("miniflare"))("workerd");
  writeFileSync(script, `#!/bin/sh\necho $$ > '${pidFile}'\nexec '${workerd.default}' "$@" > /dev/null\n`);
  chmodSync(script, 0o755);
  process.env.MINIFLARE_WORKERD_PATH = script;
  return pidFile;
}

/**
 * Time that all threads of a process have been on a processor, by the kernel's scheduler statistics, in nanoseconds
 * (Documentation/scheduler/sched-stats.rst). NaN where there is no /proc.
 */
function cpuMilliseconds(pidFile: string): number {
  if (process.platform !== "linux") return Number.NaN;
  const tasks = `/proc/${readFileSync(pidFile, "utf8").trim()}/task`;
  const nanosecondsOf = (task: string) => Number.parseInt(readFileSync(`${tasks}/${task}/schedstat`, "utf8"), 10);
  return readdirSync(tasks).reduce((sum, task) => sum + nanosecondsOf(task), 0) / 1_000_000;
}
