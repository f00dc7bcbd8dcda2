import { registerHooks } from "node:module";
import { parseArgs } from "node:util";

const HELP = `Usage: npm run simulate -- [--seeds N] [--first N] [--seed N] [--trace N]

Runs the core of the service in a world where time, chance, storage, queues, the
network and the death of processes are decided by a seed, and checks after every
answer that the service kept its promises. The same seed is the same history.

Options:
  --seeds N   how many seeds, one after the other (1000)
  --first N   the first of them (1)
  --seed N    this seed only; prints the digest of its history
  --trace N   steps to show of a seed that fails (60)
  --help      show this page
`;

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    first: { type: "string", default: "1" },
    seed: { type: "string" },
    trace: { type: "string", default: "60" },
    help: { type: "boolean", short: "h", default: false },
  },
});

const say = (line: string): boolean => process.stdout.write(`${line}\n`);

if (values.help) process.stdout.write(HELP);
else process.exitCode = await run().catch(explain);

/** @returns the exit code */
async function run(): Promise<number> {
  // What only workerd has comes from a file beside this one. Set before anything of the service is loaded.
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === "cloudflare:workers"
        ? { url: new URL("platform/workers.ts", import.meta.url).href, shortCircuit: true }
        : next(specifier, context),
  });
  const { runCampaign } = await import("./campaign.ts");
  const { seed, seeds, first, trace } = values;
  const range = seed === undefined ? { first: whole(first), seeds: whole(seeds) } : { first: whole(seed), seeds: 1 };
  const failed = await runCampaign({ ...range, traceLines: whole(trace), say });
  if (!failed) return 0;
  for (const line of failed.trace) say(line);
  say(`\nSeed ${failed.seed} broke a promise: ${failed.breach?.invariant}.`);
  say(`${failed.breach?.detail}\n\nTo repeat it: npm run simulate -- --seed ${failed.seed}`);
  return 1;
}

/** @returns the exit code */
function explain(error: unknown): number {
  if (!(error instanceof RangeError)) throw error;
  process.stderr.write(`${error.message}\n`);
  return 2;
}

function whole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new RangeError(`${text} is not a whole number`);
  return Number(text);
}
