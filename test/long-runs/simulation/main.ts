import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { Option } from "commander";
import { runCommand, wholeNumber } from "../command-line.ts";
import type { Kind } from "./kinds.ts";
import { makeLimitsVariable } from "./limits.ts";
import { PLANTED, plant } from "./planted.ts";
import { runSeeds, type SeedOptions, seedCommand } from "./seeds.ts";

const DESCRIPTION = `Runs the core of the service in a world where time, chance, storage, queues, the
network and the death of processes are decided by a seed, and checks after every
response that the service kept its promises. The same seed is the same history.`;

const options = seedCommand("simulate", DESCRIPTION)
  .addOption(new Option("--plant <fault>", "puts a fault into the service first").choices(Object.keys(PLANTED)))
  .addOption(
    new Option("--only <kind>", "only seeds in which this happens").choices([
      "ancient",
      "lost",
      "restored",
      "planted",
    ] satisfies Kind[]),
  )
  .option(
    "--isolation <seconds>",
    "how fast one application is while another one is attacked, for so long",
    wholeNumber,
  )
  .parse()
  .opts<SeedOptions & { plant?: string; only?: Kind; isolation?: number }>();

await runCommand(async () => {
  // Wrangler's bundler imports SQL as text, and JSON without an attribute.
  registerHooks({
    load: (url, context, next) => {
      const isText = url.endsWith(".sql");
      if (!isText && !url.endsWith(".json")) return next(url, context);
      const text = readFileSync(fileURLToPath(url), "utf8");
      const source = `export default ${isText ? JSON.stringify(text) : text};`;
      return { format: "module", source, shortCircuit: true };
    },
  });
  // What only workerd has comes from a file beside this one. Set before anything of the service is loaded.
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === "cloudflare:workers"
        ? { url: new URL("platform/workers.ts", import.meta.url).href, shortCircuit: true }
        : next(specifier, context),
  });
  makeLimitsVariable();
  if (options.plant !== undefined) plant(options.plant);
  const { simulate } = await import("./simulation.ts");
  const { installGlobals } = await import("./platform/globals.ts");
  installGlobals();
  if (options.isolation !== undefined) {
    const { checkIsolation } = await import("./isolation/isolation.ts");
    return checkIsolation(options.seed ?? 1, options.isolation);
  }
  const { isOfKind } = await import("./kinds.ts");
  const { only } = options;
  return runSeeds("simulate", options, simulate, (seed) => only === undefined || isOfKind(seed, only));
});
