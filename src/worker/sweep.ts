import {
  HOMES_SWEPT_AT_ONCE,
  MAX_SWEEP_D1_STATEMENTS,
  SWEEP_BUDGET_MILLISECONDS,
  SWEEP_HOME_MILLISECONDS,
  SWEEP_PATIENCE_MILLISECONDS,
} from "../shared/limits.ts";
import type { Context } from "./context.ts";
import { HomeSweep } from "./home-sweep.ts";

export interface SweepLimits {
  /** How many homes are visited at once. */
  homesAtOnce: number;
  /** How long other homes wait for what is urgent in one. */
  patienceMilliseconds: number;
  /** After this long nothing more is begun. */
  milliseconds: number;
  /** Statements of D1 after which nothing more is begun. */
  statements: number;
}

const limitsFor = (homes: number): SweepLimits => ({
  homesAtOnce: HOMES_SWEPT_AT_ONCE,
  patienceMilliseconds: SWEEP_PATIENCE_MILLISECONDS,
  milliseconds: SWEEP_BUDGET_MILLISECONDS + (homes - 1) * SWEEP_HOME_MILLISECONDS,
  statements: MAX_SWEEP_D1_STATEMENTS,
});

/**
 * Once a minute, does what has become due and finishes what a crash interrupted, in bounded chunks. All of it may be
 * repeated, even by two sweeps at once.
 *
 * Every home first gets what is urgent, one chunk of each kind; then all the rest, as far as the time and the D1 statements of
 * one invocation allow. A few homes are swept side by side, so that none waits for another. Each minute starts with a different
 * home, so that the work that does not fit is not always the same home's.
 *
 * @param homes at least one
 */
export async function sweep(
  homes: readonly [Context, ...Context[]],
  limits: SweepLimits = limitsFor(homes.length),
): Promise<void> {
  const [{ now }] = homes;
  const startedAt = now();
  const visits = inTurn(homes, Math.floor(startedAt / 60_000)).map((context) => new HomeSweep(context));
  const isUsedUp = (statementsOf: (visit: HomeSweep) => number) =>
    now() - startedAt >= limits.milliseconds ||
    visits.reduce((sum, visit) => sum + statementsOf(visit), 0) >= limits.statements;
  const isUrgentUsedUp = () => isUsedUp(({ urgentStatements }) => urgentStatements);
  const isRestUsedUp = () => isUsedUp(({ reservedStatements }) => reservedStatements);
  const areLanesEnough = homes.length <= limits.homesAtOnce;
  const patience = areLanesEnough ? null : limits.patienceMilliseconds;
  const doUrgent = (visit: HomeSweep) => visit.doUrgent(isUrgentUsedUp, patience);
  const doRest = (visit: HomeSweep) => visit.doRest(isRestUsedUp);
  const doAll = async (visit: HomeSweep) => {
    await doUrgent(visit);
    await doRest(visit);
  };
  const rounds = areLanesEnough ? [doAll] : [doUrgent, doRest];
  const steps = rounds.flatMap((round) => visits.map((visit) => () => round(visit)));
  const takeSteps = async () => {
    for (let step = steps.shift(); step; step = steps.shift()) await step();
  };
  await Promise.all(Array.from({ length: limits.homesAtOnce }, takeSteps));
}

/**
 * The same items, rotated: each turn starts about three eighths of the list further on. So consecutive turns start far apart, and
 * over as many turns as there are items, each item is the first one once.
 */
export function inTurn<Item>(items: readonly Item[], turn: number): Item[] {
  let step = Math.max(1, Math.floor((items.length * 3) / 8));
  while (greatestCommonDivisor(step, items.length) > 1) step++;
  const start = (turn * step) % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}

const greatestCommonDivisor = (one: number, other: number): number =>
  other === 0 ? one : greatestCommonDivisor(other, one % other);
