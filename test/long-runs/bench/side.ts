import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { z } from "zod";
import { PROJECT } from "../../../src/admin/platform/paths.ts";
import { loadWrangler, QUIET_WRANGLER, WRANGLER_PROGRAM } from "../../../src/admin/platform/wrangler.ts";

import { RATE_LIMIT_WINDOW_SECONDS } from "../../../src/shared/limits.ts";

const SERVICE_CONFIG = "wrangler.toml";

/** Where each side's Worker is, from the project's folder. */
const SOURCES = {
  service: { config: SERVICE_CONFIG, entry: "src/worker/index.ts" },
  floor: { config: SERVICE_CONFIG, entry: "test/long-runs/bench/floor/worker.ts" },
  /** The floor a second time: what it differs from the floor is noise. */
  twin: { config: SERVICE_CONFIG, entry: "test/long-runs/bench/floor/worker.ts" },
  peer: { config: "test/long-runs/bench/peer/wrangler.toml", entry: "test/long-runs/bench/peer.ts" },
  /** The same Workers, called in their own isolates. */
  serviceOwnCost: { config: SERVICE_CONFIG, entry: "test/long-runs/bench/own-cost/service.ts" },
  floorOwnCost: { config: SERVICE_CONFIG, entry: "test/long-runs/bench/own-cost/floor.ts" },
  twinOwnCost: { config: SERVICE_CONFIG, entry: "test/long-runs/bench/own-cost/floor.ts" },
} as const satisfies Record<string, { config: string; entry: string }>;

export type SideName = keyof typeof SOURCES;

/** Calls are made to the rate limits, which never refuse: the load comes from few devices and one address. */
const UNREACHED_LIMIT = 1_000_000_000;

/** How a side runs. */
export interface Running {
  /** With an inspector, which makes it slower. */
  inspects: boolean;
  /** Whether it consumes its queue. */
  consumes: boolean;
}

/** D1 of a side, as Node reaches it. */
export type SideDatabase = Pick<Awaited<ReturnType<Miniflare["getD1Database"]>>, "prepare" | "batch">;

/** A Worker that runs in a workerd of its own, with a state of its own on disk. */
export interface Side {
  name: SideName;
  /** Of workerd itself: nothing stands between the load generator and the Worker. */
  port: number;
  database: SideDatabase;
  /** CPU time that its workerd has used so far, in milliseconds; null where /proc does not tell. */
  cpuMilliseconds(): number | null;
  /** Memory that its workerd has now, in megabytes; null where /proc does not tell. */
  memoryMegabytes(): number | null;
  /** Where its runtime can be inspected; only of a side that was started with an inspector. */
  inspectorUrl(): Promise<URL>;
  stop(): Promise<void>;
}

/** What of a side's configuration decides how its code is built. */
export function buildSettings(name: SideName): Record<string, unknown> {
  const { unstable_readConfig: read } = loadWrangler();
  const config = read({ config: join(PROJECT, SOURCES[name].config) });
  const { minify, keep_names, upload_source_maps, compatibility_date, no_bundle } = config;
  return { minify, keep_names, upload_source_maps, compatibility_date, no_bundle };
}

/** Builds a side's Worker as it is deployed. @returns the folder with the bundle */
export async function build(name: SideName, directory: string): Promise<string> {
  const { config, entry } = SOURCES[name];
  const outdir = join(directory, name, "worker");
  // wrangler insists on the folder of static assets, whether it has files or not.
  mkdirSync(join(PROJECT, "dist/assets"), { recursive: true });
  const options = ["--dry-run", "--outdir", outdir, "--config", join(PROJECT, config), "--env", ""];
  await promisify(execFile)(process.execPath, [WRANGLER_PROGRAM, "deploy", entry, ...options], {
    cwd: PROJECT,
    env: { ...process.env, ...QUIET_WRANGLER },
  });
  return outdir;
}

/**
 * Starts a built Worker with the bindings of its wrangler.toml. Wake-ups are sent to the queue and nobody consumes them,
 * unless asked to: deliveries are no part of an answer, and locally they would use the one thread that answers.
 *
 * @param schema SQL files for its D1
 */
export async function start(
  name: SideName,
  directory: string,
  secrets: Record<string, string>,
  schema: readonly string[],
  { inspects, consumes }: Running,
): Promise<Side> {
  const wrangler = loadWrangler();
  const config = join(PROJECT, SOURCES[name].config);
  const { workerOptions } = wrangler.unstable_getMiniflareWorkerOptions(config);
  const { modulesRules: _, assets: __, ratelimits, ...options } = workerOptions;
  const unlimited = Object.keys(ratelimits ?? {}).map((binding) => [
    binding,
    { namespace_id: binding, simple: { limit: UNREACHED_LIMIT, period: RATE_LIMIT_WINDOW_SECONDS } },
  ]);
  const runtime = discardOutput(join(directory, name));
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      ...options,
      name,
      modules: true,
      rootPath: join(directory, name, "worker"),
      scriptPath: `${basename(SOURCES[name].entry, ".ts")}.js`,
      bindings: { ...z.record(z.string(), z.string()).parse(options.bindings), ...secrets },
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
  for (const file of schema) {
    const statements = wrangler.unstable_splitSqlQuery(readFileSync(file, "utf8"));
    await database.batch(statements.map((statement) => database.prepare(statement)));
  }
  return {
    name,
    port: Number(port),
    database: {
      prepare: (query) => database.prepare(query),
      batch: (statements) => database.batch(statements),
    },
    cpuMilliseconds: () => cpuMilliseconds(runtime.pidFile),
    memoryMegabytes: () => memoryMegabytes(runtime.pidFile),
    inspectorUrl: () => miniflare.getInspectorURL(),
    stop: () => miniflare.dispose(),
  };
}

/**
 * Makes miniflare run workerd with its standard output discarded: through the usual pipe every log line of a Worker
 * would be parsed by this process, on time that belongs to the load generator. Not on Windows, which has no `sh`.
 */
function discardOutput(directory: string): { pidFile: string } {
  const pidFile = join(directory, "pid");
  if (process.platform === "win32") return { pidFile };
  const script = join(directory, "workerd.sh");
  const workerd: { default: string } = createRequire(createRequire(import.meta.url).resolve("miniflare"))("workerd");
  writeFileSync(script, `#!/bin/sh\necho $$ > '${pidFile}'\nexec '${workerd.default}' "$@" > /dev/null\n`);
  chmodSync(script, 0o755);
  process.env.MINIFLARE_WORKERD_PATH = script;
  return { pidFile };
}

/**
 * Time that all threads of a process have been on a processor: the kernel's scheduler statistics, in nanoseconds
 * (Documentation/scheduler/sched-stats.rst). A kernel without them has clock ticks, of which it counts 100 a second:
 * proc(5), `stat`, fields 14 and 15.
 */
function cpuMilliseconds(pidFile: string): number | null {
  if (process.platform !== "linux") return null;
  const directory = `/proc/${readFileSync(pidFile, "utf8").trim()}`;
  if (!existsSync(`${directory}/schedstat`)) {
    const fields = readFileSync(`${directory}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }
  const threads = readdirSync(`${directory}/task`);
  const nanoseconds = threads.map((thread) =>
    parseInt(readFileSync(`${directory}/task/${thread}/schedstat`, "utf8"), 10),
  );
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1_000_000;
}

/** Resident memory of a process: proc(5), VmRSS of `status`, in units of 1024 bytes. */
function memoryMegabytes(pidFile: string): number | null {
  if (process.platform !== "linux") return null;
  const pid = readFileSync(pidFile, "utf8").trim();
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return resident === undefined ? null : Math.round(Number(resident) / 1024);
}
