import { MAX_SWEEP_D1_ROUND_TRIPS, SWEEP_BUDGET_MILLISECONDS } from "../shared/limits.ts";
import type { Context } from "./context.ts";
import { log } from "./log.ts";
import { createParts, type SweepCounts, type SweepPart } from "./sweep-parts.ts";

/**
 * Once a minute, does what has become due and finishes what a crash interrupted, in bounded chunks. All of it may be
 * repeated, even by two sweeps at once.
 */
export async function sweep(context: Context): Promise<void> {
  const startedAt = context.now();
  const done: SweepCounts = {
    eventsReleased: 0,
    eventsWoken: 0,
    badgesExpired: 0,
    blocksFinished: 0,
    restorationsNoticed: 0,
    invitationsExpired: 0,
    numbersReleased: 0,
    valuesResealed: 0,
    valuesUnreadable: 0,
    chunksReconciled: 0,
    reconciliationsSkipped: 0,
    eventsDeleted: 0,
    invitationsDeleted: 0,
  };
  const isFinished = await runRoundRobin(context, done, new Map(Object.entries(createParts())), startedAt);
  const didAnything = Object.values(done).some((count) => count > 0);
  if (!didAnything && isFinished) return;
  log("info", {
    event: "sweep",
    ...done,
    isFinished,
    milliseconds: context.now() - startedAt,
    d1RoundTrips: context.db.roundTrips,
  });
}

/**
 * Runs one chunk of each part in turn, until no part finds anything or the sweep has used up its time or its D1 calls; the
 * rest waits for the next sweep. So no part waits for another's backlog, and a part that fails does not stop the others.
 *
 * @returns whether nothing is left
 */
async function runRoundRobin(
  context: Context,
  done: SweepCounts,
  parts: Map<string, SweepPart>,
  startedAt: number,
): Promise<boolean> {
  const tripsBefore = context.db.roundTrips;
  let isFinished = true;
  while (parts.size > 0) {
    for (const [name, part] of parts) {
      if (context.now() - startedAt >= SWEEP_BUDGET_MILLISECONDS) return false;
      if (context.db.roundTrips - tripsBefore >= MAX_SWEEP_D1_ROUND_TRIPS) return false;
      try {
        if (!(await part(context, done))) parts.delete(name);
      } catch (error) {
        log("error", { event: "sweep-part-failed", part: name, error });
        parts.delete(name);
        isFinished = false;
      }
    }
  }
  return isFinished;
}
