import { mkdirSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Log, LogLevel, type Miniflare, type V4WorkerOptions } from "miniflare";
import { z } from "zod";
import { Database } from "../../src/admin/platform/database.ts";
import { Homes } from "../../src/admin/platform/homes.ts";
import { migrate } from "../../src/admin/platform/migrations.ts";
import { loadWrangler, runWrangler } from "../../src/admin/platform/wrangler.ts";
import { RATE_LIMIT_WINDOW_SECONDS } from "../../src/shared/limits/platform-limits.ts";
import { sealingKey } from "../../src/shared/schema.ts";

/** Rate limits are asked and never refuse: the load comes from few devices and one address. */
const UNREACHED_LIMIT = 1_000_000_000;

/**
 * Builds a Worker as the service is deployed, with the bindings of a wrangler.toml.
 *
 * @param rootPath the folder for the bundle
 * @param privateKey of the first sealing key
 * @returns what miniflare needs to run it, but its name
 */
export async function buildWorker(
  { entry, configuration }: { entry: string; configuration: string },
  rootPath: string,
  privateKey: string,
): Promise<V4WorkerOptions> {
  // wrangler insists on the folder of static assets, whether it has files or not.
  for (const folder of [join(dirname(configuration), "dist/assets"), rootPath]) mkdirSync(folder, { recursive: true });
  await runWrangler(["deploy", entry, "--dry-run", "--outdir", rootPath, "--config", configuration, "--env", ""]);
  const { workerOptions } = loadWrangler().unstable_getMiniflareWorkerOptions(configuration);
  const { modulesRules: _, assets: __, ratelimits, ...options } = workerOptions;
  const simple = { limit: UNREACHED_LIMIT, period: RATE_LIMIT_WINDOW_SECONDS };
  const unlimited = Object.keys(ratelimits ?? {}).map((binding) => [binding, { namespace_id: binding, simple }]);
  return {
    ...options,
    rootPath,
    modulesRoot: rootPath,
    modules: bundledModules(rootPath, `${basename(entry, ".ts")}.js`),
    bindings: { ...z.record(z.string(), z.string()).parse(options.bindings), SEALING_KEY_1: privateKey },
    ratelimits: Object.fromEntries(unlimited),
  };
}

/** The bundle's script, and the migrations of an allocator's tables that it imports. */
function bundledModules(directory: string, script: string): { type: "ESModule" | "Text"; path: string }[] {
  const migrations = readdirSync(directory).filter((file) => file.endsWith(".sql"));
  return [
    { type: "ESModule", path: join(directory, script) },
    ...migrations.map((file) => ({ type: "Text" as const, path: join(directory, file) })),
  ];
}

/** Of every miniflare that runs such Workers. */
export const QUIET = {
  log: new Log(LogLevel.WARN),
  logRequests: false,
  cf: false,
  telemetry: { enabled: false },
} as const;

/** @param worker its name, if miniflare runs several */
export async function homesOf(miniflare: Miniflare, worker?: string): Promise<Homes> {
  const home = async (number: number, binding: string) => ({
    ...{ number, place: null },
    database: new Database(await miniflare.getD1Database(binding, worker)),
  });
  return new Homes([await home(1, "DB"), await home(2, "DB_2")]);
}

/** As a deployment makes them, with the first sealing key. */
export const makeTables = (homes: Homes, publicKey: string) =>
  homes.map(({ database }) =>
    database.run(async (orm, d1) => {
      await migrate(d1, loadWrangler());
      await orm.insert(sealingKey).values({ version: 1, publicKey, createdAt: Date.now() });
    }),
  );
