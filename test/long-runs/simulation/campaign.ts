import { installGlobals } from "./platform/globals.ts";
import { type SeedResult, simulate } from "./simulation.ts";

/** Time between two lines of progress. */
const PROGRESS_MILLISECONDS = 5000;

/** Every so many seeds one is run twice. */
const REPEATED_SEEDS = 50;

const NOT_REPEATED = { invariant: "one seed is one history", detail: "Its second run took other steps." };

export interface Campaign {
  first: number;
  seeds: number;
  traceLines: number;
  say(line: string): void;
}

/**
 * Runs seeds one after the other.
 *
 * @returns the first that breaks a promise, or null
 */
export async function runCampaign({ first, seeds, traceLines, say }: Campaign): Promise<SeedResult | null> {
  installGlobals();
  const startedAt = performance.now();
  let toldAt = startedAt;
  let steps = 0;
  for (let seed = first; seed < first + seeds; seed++) {
    const result = await simulate(seed, traceLines);
    steps += result.steps;
    if (result.breach) return result;
    if (seed % REPEATED_SEEDS === 0 && !(await repeats(result))) return { ...result, breach: NOT_REPEATED };
    if (seeds === 1) say(`seed ${seed}: ${result.steps} steps, digest ${result.digest}`);
    const isLast = seed === first + seeds - 1;
    if (performance.now() - toldAt < PROGRESS_MILLISECONDS && !isLast) continue;
    toldAt = performance.now();
    const done = seed - first + 1;
    const perSecond = done / ((toldAt - startedAt) / 1000);
    say(`${done} of ${seeds} seeds, ${perSecond.toFixed(1)} a second, ${steps} steps`);
  }
  return null;
}

async function repeats({ seed, digest }: SeedResult): Promise<boolean> {
  return (await simulate(seed, 0)).digest === digest;
}
