import type { Context } from "../../../src/worker/context.ts";
import { type Interceptor, interceptedContext } from "./intercepted.ts";

/** Who goes on, of the actors that wait. @returns a place in the list */
export type Schedule = (waiting: readonly number[]) => number;

/** Picks at random, the same for the same seed (mulberry32). */
export function seededSchedule(seed: number): Schedule {
  let state = seed;
  return ({ length }) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % length;
  };
}

/** Lets the first actor take some steps, then all others run to their end, then the first one go on. */
export function interruptingSchedule(steps: number): { schedule: Schedule; isInterrupted(): boolean } {
  let taken = 0;
  let isInterrupted = false;
  const schedule: Schedule = (waiting) => {
    const first = waiting.indexOf(0);
    const other = waiting.findIndex((actor) => actor !== 0);
    if (first !== -1 && taken < steps) {
      taken++;
      return first;
    }
    // There was still something to interrupt.
    if (first !== -1 && other !== -1) isInterrupted = true;
    return other === -1 ? first : other;
  };
  return { schedule, isInterrupted: () => isInterrupted };
}

/**
 * Runs actors at once, one step at a time: each stops before and after every call to D1 and to the allocator, and the
 * schedule decides who goes on. One schedule is one interleaving, whatever the machine does. What an actor defers goes
 * on beside it.
 *
 * @param now milliseconds; the time of every actor
 */
export async function interleave<Result>(
  schedule: Schedule,
  now: () => number,
  actors: readonly ((context: Context) => Promise<Result>)[],
): Promise<Result[]> {
  const waiting: { actor: number; goOn: () => void }[] = [];
  let running = 0;
  let allStopped = Promise.withResolvers<void>();
  const start = (): void => {
    if (running === 0) allStopped = Promise.withResolvers();
    running++;
  };
  const stop = (): void => {
    running--;
    if (running < 0) throw new Error("an actor waits in two places at once");
    if (running === 0) allStopped.resolve();
  };
  const run = <T>(work: Promise<T>): Promise<T> => work.finally(stop);
  const defer = (work: Promise<unknown>): void => {
    start();
    void run(work).catch(() => undefined);
  };
  const results = actors.map(async (act, actor) => {
    const gate = (): Promise<void> => {
      const turn = Promise.withResolvers<void>();
      waiting.push({ actor, goOn: turn.resolve });
      stop();
      return turn.promise;
    };
    start();
    return run(gate().then(() => act(interceptedContext(gatedBy(gate), { now, defer }))));
  });
  const all = Promise.all(results);
  all.catch(() => undefined);
  for (;;) {
    while (running > 0) await allStopped.promise;
    if (waiting.length === 0) return all;
    const [next] = waiting.splice(schedule(waiting.map(({ actor }) => actor)), 1);
    start();
    next?.goOn();
  }
}

/** Stops before and after each call: what was read may be old by the time it is used. */
function gatedBy(gate: () => Promise<void>): Interceptor {
  return async (_, call) => {
    await gate();
    try {
      return await call();
    } finally {
      await gate();
    }
  };
}
