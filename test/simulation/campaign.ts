import { installGlobals } from "./platform/globals.ts";
import { type SeedResult, simulate } from "./simulation.ts";

/** Seeds between two looks at the clock. */
const PROGRESS_MILLISECONDS = 5000;

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
