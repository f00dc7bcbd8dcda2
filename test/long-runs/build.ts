import { mkdirSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { V4WorkerOptions } from "miniflare";
import { z } from "zod";
import { loadWrangler, runWrangler } from "../../src/admin/platform/wrangler.ts";
import { RATE_LIMIT_WINDOW_SECONDS } from "../../src/shared/limits/platform-limits.ts";

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
