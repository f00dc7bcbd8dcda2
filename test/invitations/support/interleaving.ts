import type { Context } from "../../../src/context.ts";
import { type Interceptor, interceptedContext } from "./intercepted.ts";

/** Waits for its turn. */
type Gate = () => Promise<void>;

/** Numbers from 0 to below `limit`, the same for the same seed (mulberry32). */
export function seededRandom(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}

/**
 * Runs actors at once, one step at a time: each stops before and after every call to D1 and to the allocator, and the
 * seed decides who goes on. One seed is one interleaving, whatever the machine does. What an actor defers goes on like
 * one more actor.
 *
 * @param now milliseconds; the time of every actor
 */
export async function interleave<Result>(
  seed: number,
  now: () => number,
  actors: readonly ((context: Context) => Promise<Result>)[],
): Promise<Result[]> {
  const random = seededRandom(seed);
  const waiting: (() => void)[] = [];
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
  const gate: Gate = () => {
    const turn = Promise.withResolvers<void>();
    waiting.push(turn.resolve);
    stop();
    return turn.promise;
  };
  const run = <T>(work: Promise<T>): Promise<T> => work.finally(stop);
  const defer = (work: Promise<unknown>): void => {
    start();
    void run(work).catch(() => undefined);
  };
  const results = actors.map(async (actor) => {
    start();
    return run(gate().then(() => actor(interceptedContext(gatedBy(gate), { now, defer }))));
  });
  const all = Promise.all(results);
  all.catch(() => undefined);
  for (;;) {
    while (running > 0) await allStopped.promise;
    const [next] = waiting.splice(random(Math.max(waiting.length, 1)), 1);
    if (!next) return all;
    start();
    next();
  }
}

/** Stops before and after each call: what was read may be old by the time it is used. */
function gatedBy(gate: Gate): Interceptor {
  return async (_, call) => {
    await gate();
    try {
      return await call();
    } finally {
      await gate();
    }
  };
}
