import { registerHooks } from "node:module";
import { Command } from "commander";
import { runCommand, say, wholeNumber } from "../command-line.ts";

const DESCRIPTION = `Runs the core of the service in a world where time, chance, storage, queues, the
network and the death of processes are decided by a seed, and checks after every
response that the service kept its promises. The same seed is the same history.`;

const options = new Command("npm run simulate --")
  .description(DESCRIPTION)
  .option("--seeds <n>", "how many seeds, one after the other", wholeNumber, 1000)
  .option("--first <n>", "the first of them", wholeNumber, 1)
  .option("--seed <n>", "this seed only; prints the digest of its history", wholeNumber)
  .option("--trace <n>", "steps to show of a seed that fails", wholeNumber, 60)
  .parse()
  .opts<{ seeds: number; first: number; seed?: number; trace: number }>();

/** Time between two lines of progress. */
const PROGRESS_MILLISECONDS = 5000;
/** Every so many seeds one is run twice. */
const REPEATED_SEEDS = 50;

await runCommand(async () => {
  // What only workerd has comes from a file beside this one. Set before anything of the service is loaded.
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === "cloudflare:workers"
        ? { url: new URL("platform/workers.ts", import.meta.url).href, shortCircuit: true }
        : next(specifier, context),
  });
  const { simulate } = await import("./simulation.ts");
  const { installGlobals } = await import("./platform/globals.ts");
  installGlobals();
  const { first, seeds } = options.seed === undefined ? options : { first: options.seed, seeds: 1 };
  const startedAt = performance.now();
  let toldAt = startedAt;
  let steps = 0;
  for (let seed = first; seed < first + seeds; seed++) {
    const result = await simulate(seed, options.trace);
    steps += result.steps;
    const { digest } = result;
    const isRepeated = seed % REPEATED_SEEDS !== 0 || (await simulate(seed, 0)).digest === digest;
    const breach = isRepeated
      ? result.breach
      : { invariant: "one seed is one history", detail: "Its second run took other steps." };
    if (breach) {
      for (const line of result.trace) say(line);
      say(`\nSeed ${seed} broke a promise: ${breach.invariant}.\n${breach.detail}`);
      throw new Error(`To repeat it: npm run simulate -- --seed ${seed}`);
    }
    if (seeds === 1) say(`seed ${seed}: ${result.steps} steps, digest ${digest}`);
    if (performance.now() - toldAt < PROGRESS_MILLISECONDS && seed < first + seeds - 1) continue;
    toldAt = performance.now();
    const done = seed - first + 1;
    say(`${done} of ${seeds} seeds, ${(done / ((toldAt - startedAt) / 1000)).toFixed(1)} a second, ${steps} steps`);
  }
});
