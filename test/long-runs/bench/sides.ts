import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { exportJWK, generateKeyPair } from "jose";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { z } from "zod";
import { createApplication } from "../../../src/admin/application-create.ts";
import { Database } from "../../../src/admin/platform/database.ts";
import { Homes } from "../../../src/admin/platform/homes.ts";
import { PROJECT } from "../../../src/admin/platform/paths.ts";
import { loadWrangler, runWrangler } from "../../../src/admin/platform/wrangler.ts";
import { RATE_LIMIT_WINDOW_SECONDS } from "../../../src/shared/limits.ts";
import { sealingKey } from "../../../src/shared/schema.ts";
import { generateSealingKey } from "../../../src/shared/sealing.ts";
import { note } from "../command-line.ts";
import { migrationFiles } from "../migrations.ts";

const WORKERS = "test/long-runs/bench/workers";

/** Where the Worker of each side is, from the project's folder. All are built by the service's wrangler.toml. */
const ENTRIES = {
  service: "src/worker/index.ts",
  floor: `${WORKERS}/floor.ts`,
  /** The floor a second time: what it differs from the floor is noise. */
  twin: `${WORKERS}/floor.ts`,
  peer: `${WORKERS}/peer.ts`,
} as const;

export type SideName = keyof typeof ENTRIES;

/** The same Workers, called in their own isolates. */
const drivenEntry = (name: SideName): string => `${WORKERS}/own-cost-${name === "service" ? name : "floor"}.ts`;

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
  /** @param home 2 on the service's side alone */
  makeApplication(webhookUrl: string | null, home?: 1 | 2): Promise<BenchApplication>;
  /** CPU time that its workerd has used so far, in milliseconds; null where /proc does not tell. */
  cpuMilliseconds(): number | null;
  /** Where its runtime can be inspected; only of a side that was started with an inspector. */
  inspectorUrl(): Promise<URL>;
  stop(): Promise<void>;
}

export interface Running {
  /** Whether a driver calls it in its own isolate (workers/own-cost-driver.ts). */
  isDriven?: boolean;
  /** With an inspector, which makes it slower. */
  inspects?: boolean;
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
    for (const name of names) sides.push(await start(name, join(directory, name), running));
    await work(sides);
  } finally {
    await clean();
  }
}

/** Builds a side's Worker as it is deployed, and starts it with the bindings of its wrangler.toml and with its tables. */
async function start(name: SideName, directory: string, { isDriven, inspects, consumes }: Running): Promise<Side> {
  const entry = isDriven ? drivenEntry(name) : ENTRIES[name];
  // wrangler insists on the folder of static assets, whether it has files or not.
  for (const folder of [join(PROJECT, "dist/assets"), directory]) mkdirSync(folder, { recursive: true });
  const rootPath = join(directory, "worker");
  const config = join(PROJECT, "wrangler.toml");
  await runWrangler(["deploy", entry, "--dry-run", "--outdir", rootPath, "--config", config, "--env", ""]);

  const wrangler = loadWrangler();
  const { workerOptions } = wrangler.unstable_getMiniflareWorkerOptions(config);
  const { modulesRules: _, assets: __, ratelimits, ...options } = workerOptions;
  const unlimited = Object.keys(ratelimits ?? {}).map((binding) => [
    binding,
    { namespace_id: binding, simple: { limit: UNREACHED_LIMIT, period: RATE_LIMIT_WINDOW_SECONDS } },
  ]);
  const key = await generateSealingKey();
  const pidFile = discardOutput(directory);
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      ...options,
      name,
      modules: true,
      rootPath,
      scriptPath: `${basename(entry, ".ts")}.js`,
      bindings: { ...z.record(z.string(), z.string()).parse(options.bindings), SEALING_KEY_1: key.privateKey },
      ratelimits: Object.fromEntries(unlimited),
      unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
      resourcePersistencePath: join(directory, "state"),
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
  const databases = { 1: await miniflare.getD1Database("DB"), 2: await miniflare.getD1Database("DB_2") };
  for (const database of Object.values(databases)) {
    for (const file of name === "peer" ? [join(PROJECT, WORKERS, "peer.sql")] : migrationFiles()) {
      const statements = wrangler.unstable_splitSqlQuery(readFileSync(file, "utf8"));
      await database.batch(statements.map((statement) => database.prepare(statement)));
    }
    if (name !== "peer") {
      const row = { version: 1, publicKey: key.publicKey, createdAt: Date.now() };
      await new Database(database).run((orm) => orm.insert(sealingKey).values(row));
    }
  }
  return {
    name,
    port: Number(port),
    database: databases[1],
    makeApplication: (webhookUrl, home = 1) => makeApplication(name, databases, webhookUrl, home),
    cpuMilliseconds: () => cpuMilliseconds(pidFile),
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
const INSERT_OLD_BADGES = `INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id,
    position, turn, issued_at)
  SELECT ?1 + place, ?2, 'old-device-' || place, 'old-user-' || place, ?3, 1, 'evt_' || place, place, 1, ?4 FROM places`;
const INSERT_OLD_PEER_BADGES = `INSERT INTO badge (number, application_id, udid, user_id, metadata, created_at)
  SELECT ?1 + place, ?2, 'old-device-' || place, 'old-user-' || place, ?3, ?4 FROM places`;

/** The databases of one side, by home. The floor and the peer use the first alone. */
type Databases = Readonly<Record<1 | 2, D1>>;

async function makeApplication(
  name: SideName,
  databases: Databases,
  webhookUrl: string | null,
  home: 1 | 2,
): Promise<BenchApplication> {
  const [make, insert] =
    name === "peer" ? [makePeerApplication, INSERT_OLD_PEER_BADGES] : [makeServiceApplication, INSERT_OLD_BADGES];
  const application = await make(databases, webhookUrl, home);
  const database = databases[home];
  nextOldNumber += OLD_BADGES;
  const values = [nextOldNumber, application.id, METADATA, Date.now()];
  await database
    .prepare(`${PLACES} ${insert}`)
    .bind(...values)
    .run();
  return application;
}

async function makeServiceApplication(
  databases: Databases,
  webhookUrl: string | null,
  home: 1 | 2,
): Promise<BenchApplication> {
  const settings = { name: "Benchmark", requireSecret: false, reuseAfterSeconds: 0, signatureLifetimeSeconds: null };
  const homes = new Homes([
    { number: 1, place: null, database: new Database(databases[1]) },
    { number: 2, place: null, database: new Database(databases[2]) },
  ]);
  const created = await createApplication(homes, { ...settings, webhookUrl, home });
  return { id: created.applicationId, secret: created.applicationSecret };
}

let peerApplications = 0;

async function makePeerApplication({ 1: database }: Databases, webhookUrl: string | null): Promise<BenchApplication> {
  const [id, secret] = [`peer-${peerApplications++}`, crypto.randomUUID()];
  const pair = await generateKeyPair("ES256", { extractable: true });
  const privateKey = JSON.stringify(await exportJWK(pair.privateKey));
  const publicKey = Buffer.from(await crypto.subtle.exportKey("spki", pair.publicKey)).toString("base64");
  const insert = "INSERT INTO application VALUES (?, ?, ?, ?, ?)";
  await database.batch([
    database.prepare(insert).bind(id, secret, webhookUrl, privateKey, publicKey),
    database.prepare("INSERT INTO counter VALUES (?, ?)").bind(id, peerApplications * 1_000_000_000),
  ]);
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
