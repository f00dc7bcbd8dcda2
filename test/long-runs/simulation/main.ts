import { createHash } from "node:crypto";
import { Command, Option } from "commander";
import { runCommand, say, wholeNumber } from "../command-line.ts";
import { makeLimitsVariable } from "./limits.ts";
import { prepareLoading } from "./loading.ts";
import { PLANTED, plant } from "./planted.ts";

const DESCRIPTION = `Runs the core of the service in a world where time, chance, storage, queues, the
network and the death of processes are decided by a seed, and checks after every
response that the service kept its promises. The same seed is the same history.`;

const options = new Command("npm run simulate --")
  .description(DESCRIPTION)
  .option("--seeds <n>", "how many seeds, one after the other", wholeNumber, 1000)
  .option("--first <n>", "the first of them", wholeNumber, 1)
  .option("--seed <n>", "this seed only; prints the digest of its history", wholeNumber)
  .option("--trace <n>", "steps to show of a seed that fails", wholeNumber, 60)
  .option("--go-on", "runs the other seeds when one has failed", false)
  .addOption(new Option("--plant <fault>", "puts a fault into the service first").choices(PLANTED))
  .option("--isolation <seconds>", "how fast one application is while another one is attacked, so long", wholeNumber)
  .parse()
  .opts<{
    seeds: number;
    first: number;
    seed?: number;
    trace: number;
    goOn: boolean;
    plant?: string;
    isolation?: number;
  }>();

/** Every so many seeds one is run twice, and progress is told. */
const ROUND_SEEDS = 50;
const digestOf = (history: string[]) => createHash("sha256").update(history.join("\n")).digest("hex").slice(0, 8);

await runCommand(async () => {
  prepareLoading();
  makeLimitsVariable();
  if (options.plant !== undefined) plant(options.plant);
  const { simulate } = await import("./simulation.ts");
  const { installGlobals } = await import("./platform/globals.ts");
  installGlobals();
  if (options.isolation !== undefined) {
    const { checkIsolation } = await import("./isolation.ts");
    return checkIsolation(options.seed ?? 1, options.isolation);
  }

  const { first, seeds } = options.seed === undefined ? options : { first: options.seed, seeds: 1 };
  const startedAt = performance.now();
  let allSteps = 0;
  const failed: number[] = [];
  for (let seed = first; seed < first + seeds; seed++) {
    const { breach, history, steps } = await simulate(seed);
    allSteps += steps;
    const digest = digestOf(history);
    if (breach) {
      for (const line of options.trace === 0 ? [] : history.slice(-options.trace)) say(line);
      say(`\nSeed ${seed} broke a promise: ${breach.invariant}.\n${breach.detail}`);
      const remedy = `To repeat it: npm run simulate -- --seed ${seed}`;
      if (!options.goOn) throw new Error(remedy);
      say(remedy);
      failed.push(seed);
    }
    if (seeds === 1) say(`seed ${seed}: ${steps} steps, digest ${digest}`);
    const isRound = seed % ROUND_SEEDS === 0;
    if (isRound && digestOf((await simulate(seed)).history) !== digest) {
      throw new Error(`Seed ${seed} had two histories: the second run took other steps.`);
    }
    const done = seed - first + 1;
    const rate = (done * 1000) / (performance.now() - startedAt);
    if (isRound || done === seeds) say(`${done} of ${seeds} seeds, ${rate.toFixed(1)} a second, ${allSteps} steps`);
  }
  if (failed.length > 0) throw new Error(`${failed.length} of ${seeds} seeds broke a promise: ${failed.join(", ")}`);
});
