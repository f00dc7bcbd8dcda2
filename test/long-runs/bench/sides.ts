import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { exportJWK, generateKeyPair } from "jose";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { z } from "zod";
import { createApplication } from "../../../src/admin/application-create.ts";
import { Database } from "../../../src/admin/platform/database.ts";
import { PROJECT } from "../../../src/admin/platform/paths.ts";
import { loadWrangler, QUIET_WRANGLER, WRANGLER_PROGRAM } from "../../../src/admin/platform/wrangler.ts";
import { RATE_LIMIT_WINDOW_SECONDS } from "../../../src/shared/limits.ts";
import { sealingKey } from "../../../src/shared/schema.ts";
import { generateSealingKey } from "../../../src/shared/sealing.ts";
import { note } from "../command-line.ts";
import { migrationFiles } from "../migrations.ts";

const CONFIG = "wrangler.toml";
const WORKERS = "test/long-runs/bench/workers";

/** Where the Worker of each side is, from the project's folder. All are built by the service's wrangler.toml. */
const ENTRIES = {
  service: "src/worker/index.ts",
  floor: `${WORKERS}/floor.ts`,
  /** The floor a second time: what it differs from the floor is noise. */
  twin: `${WORKERS}/floor.ts`,
  peer: `${WORKERS}/peer.ts`,
  /** The same Workers, called in their own isolates. */
  serviceOwnCost: `${WORKERS}/own-cost-service.ts`,
  floorOwnCost: `${WORKERS}/own-cost-floor.ts`,
  twinOwnCost: `${WORKERS}/own-cost-floor.ts`,
} as const;

export type SideName = keyof typeof ENTRIES;

/** Rate limits are asked and never refuse: the load comes from few devices and one address. */
const UNREACHED_LIMIT = 1_000_000_000;

/** An application as its clients know it. */
export interface BenchApplication {
  id: string;
  secret: string;
}

type D1 = Awaited<ReturnType<Miniflare["getD1Database"]>>;

/** A Worker that runs in a workerd of its own, with a state of its own on disk. */
export interface Side {
  name: SideName;
  /** Of workerd itself: nothing stands between the load generator and the Worker. */
  port: number;
  database: D1;
  makeApplication(webhookUrl: string | null): Promise<BenchApplication>;
  /** CPU time that its workerd has used so far, in milliseconds; null where /proc does not tell. */
  cpuMilliseconds(): number | null;
  /** Memory that its workerd has now, in megabytes; null where /proc does not tell. */
  memoryMegabytes(): number | null;
  /** Where its runtime can be inspected; only of a side that was started with an inspector. */
  inspectorUrl(): Promise<URL>;
  stop(): Promise<void>;
}

export interface Running {
  /** With an inspector, which makes it slower. */
  inspects?: boolean;
  /** Whether it consumes its queue. */
  consumes?: boolean;
}

/** Builds and starts these sides, lets `work` use them, and stops them, whatever happens. */
export async function withSides(
  names: readonly SideName[],
  running: Running,
  work: (side: (name: SideName) => Side) => Promise<void>,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "badge-bench-"));
  const sides: Side[] = [];
  const clean = async () => {
    await Promise.allSettled(sides.map((side) => side.stop()));
    rmSync(directory, { recursive: true, force: true });
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void clean().finally(() => process.exit(1)));
  }
  try {
    note("Building the Workers and starting them …");
    await Promise.all(names.map((name) => build(name, directory)));
    for (const name of names) sides.push(await start(name, directory, running));
    await work((wanted) => {
      const side = sides.find(({ name }) => name === wanted);
      if (!side) throw new Error(`${wanted} was not started`);
      return side;
    });
  } finally {
    await clean();
  }
}

/** Builds a side's Worker as it is deployed. */
async function build(name: SideName, directory: string): Promise<void> {
  // wrangler insists on the folder of static assets, whether it has files or not.
  for (const folder of [join(PROJECT, "dist/assets"), join(directory, name)]) mkdirSync(folder, { recursive: true });
  const outdir = join(directory, name, "worker");
  const options = ["--dry-run", "--outdir", outdir, "--config", join(PROJECT, CONFIG), "--env", ""];
  const env = { ...process.env, ...QUIET_WRANGLER };
  await promisify(execFile)(process.execPath, [WRANGLER_PROGRAM, "deploy", ENTRIES[name], ...options], {
    cwd: PROJECT,
    env,
  });
}

/** Starts a built Worker with the bindings of its wrangler.toml and with its tables. */
async function start(name: SideName, directory: string, { inspects, consumes }: Running): Promise<Side> {
  const wrangler = loadWrangler();
  const { workerOptions } = wrangler.unstable_getMiniflareWorkerOptions(join(PROJECT, CONFIG));
  const { modulesRules: _, assets: __, ratelimits, ...options } = workerOptions;
  const unlimited = Object.keys(ratelimits ?? {}).map((binding) => [
    binding,
    { namespace_id: binding, simple: { limit: UNREACHED_LIMIT, period: RATE_LIMIT_WINDOW_SECONDS } },
  ]);
  const key = await generateSealingKey();
  const pidFile = discardOutput(join(directory, name));
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      ...options,
      name,
      modules: true,
      rootPath: join(directory, name, "worker"),
      scriptPath: `${basename(ENTRIES[name], ".ts")}.js`,
      bindings: { ...z.record(z.string(), z.string()).parse(options.bindings), SEALING_KEY_1: key.privateKey },
      ratelimits: Object.fromEntries(unlimited),
      unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
      resourcePersistencePath: join(directory, name, "state"),
      log: new Log(LogLevel.WARN),
      logRequests: false,
      cf: false,
      telemetry: { enabled: false },
      ...(inspects && { inspectorPort: 0 }),
      ...(!consumes && { queueConsumers: {} }),
    }),
  );
  const { port } = await miniflare.unsafeGetDirectURL(name).catch(async (error) => {
    await miniflare.dispose();
    throw error;
  });
  const database = await miniflare.getD1Database("DB");
  for (const file of name === "peer" ? [join(PROJECT, WORKERS, "peer.sql")] : migrationFiles()) {
    const statements = wrangler.unstable_splitSqlQuery(readFileSync(file, "utf8"));
    await database.batch(statements.map((statement) => database.prepare(statement)));
  }
  if (name !== "peer") {
    const row = { version: 1, publicKey: key.publicKey, createdAt: Date.now() };
    await new Database(database).run((orm) => orm.insert(sealingKey).values(row));
  }
  const make = name === "peer" ? makePeerApplication : makeServiceApplication;
  return {
    name,
    port: Number(port),
    database,
    makeApplication: (webhookUrl) => make(database, webhookUrl),
    cpuMilliseconds: () => cpuMilliseconds(pidFile),
    memoryMegabytes: () => memoryMegabytes(pidFile),
    inspectorUrl: () => miniflare.getInspectorURL(),
    stop: () => miniflare.dispose(),
  };
}

/** Badges that every application has before anything is measured: an empty table would hide what grows with it. */
const OLD_BADGES = 2000;
/** In no application's range, so that none of their numbers is handed out again. */
let nextOldNumber = 500_000_000;
const METADATA = JSON.stringify({ deviceModel: "Pixel 9", os: "Android", osVersion: "16", sdkVersion: "3.2.1" });
/** Numbers from 1 as a table. */
const PLACES = `WITH RECURSIVE places (place) AS (SELECT 1 UNION ALL SELECT place + 1 FROM places WHERE place < ${OLD_BADGES})`;

async function insertOldBadges(database: D1, sql: string, applicationId: string): Promise<void> {
  await database.prepare(`${PLACES} ${sql}`).bind(nextOldNumber, applicationId, METADATA, Date.now()).run();
  nextOldNumber += OLD_BADGES;
}

async function makeServiceApplication(database: D1, webhookUrl: string | null): Promise<BenchApplication> {
  const { applicationId: id, applicationSecret: secret } = await createApplication(new Database(database), {
    name: "Benchmark",
    webhookUrl,
    requireSecret: false,
    reuseAfterSeconds: 0,
    signatureLifetimeSeconds: null,
  });
  const insert = `INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id,
      position, turn, issued_at)
    SELECT ?1 + place, ?2, 'old-device-' || place, 'old-user-' || place, ?3, 1, 'evt_' || place, place, 1, ?4 FROM places`;
  await insertOldBadges(database, insert, id);
  return { id, secret };
}

let peerApplications = 0;

async function makePeerApplication(database: D1, webhookUrl: string | null): Promise<BenchApplication> {
  const id = `peer-${peerApplications++}`;
  const secret = crypto.randomUUID();
  const pair = await generateKeyPair("ES256", { extractable: true });
  const privateKey = JSON.stringify(await exportJWK(pair.privateKey));
  const publicKey = Buffer.from(await crypto.subtle.exportKey("spki", pair.publicKey)).toString("base64");
  const insert = "INSERT INTO application VALUES (?, ?, ?, ?, ?)";
  await database.batch([
    database.prepare(insert).bind(id, secret, webhookUrl, privateKey, publicKey),
    database.prepare("INSERT INTO counter VALUES (?, ?)").bind(id, peerApplications * 1_000_000_000),
  ]);
  const insertBadges = `INSERT INTO badge (number, application_id, udid, user_id, metadata, created_at)
    SELECT ?1 + place, ?2, 'old-device-' || place, 'old-user-' || place, ?3, ?4 FROM places`;
  await insertOldBadges(database, insertBadges, id);
  return { id, secret };
}

/**
 * Makes miniflare run workerd with its standard output discarded: through the usual pipe this process would parse every
 * log line of a Worker, on time that belongs to the load generator. Not on Windows, which has no `sh`.
 *
 * @returns the file that will hold workerd's process ID
 */
function discardOutput(directory: string): string {
  const pidFile = join(directory, "pid");
  if (process.platform === "win32") return pidFile;
  const script = join(directory, "workerd.sh");
  const workerd: { default: string } = createRequire(createRequire(import.meta.url).resolve("miniflare"))("workerd");
  writeFileSync(script, `#!/bin/sh\necho $$ > '${pidFile}'\nexec '${workerd.default}' "$@" > /dev/null\n`);
  chmodSync(script, 0o755);
  process.env.MINIFLARE_WORKERD_PATH = script;
  return pidFile;
}

/**
 * Time that all threads of a process have been on a processor: the kernel's scheduler statistics, in nanoseconds
 * (Documentation/scheduler/sched-stats.rst).
 */
function cpuMilliseconds(pidFile: string): number | null {
  if (process.platform !== "linux") return null;
  const tasks = `/proc/${readFileSync(pidFile, "utf8").trim()}/task`;
  const nanosecondsOf = (task: string) => Number.parseInt(readFileSync(`${tasks}/${task}/schedstat`, "utf8"), 10);
  return readdirSync(tasks).reduce((sum, task) => sum + nanosecondsOf(task), 0) / 1_000_000;
}

/** Resident memory of a process: proc(5), VmRSS of `status`, in units of 1024 bytes. */
function memoryMegabytes(pidFile: string): number | null {
  if (process.platform !== "linux") return null;
  const status = readFileSync(`/proc/${readFileSync(pidFile, "utf8").trim()}/status`, "utf8");
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  return resident === undefined ? null : Math.round(Number(resident) / 1024);
}
