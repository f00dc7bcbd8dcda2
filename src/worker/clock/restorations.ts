import { CLOCK_GAP_MILLISECONDS } from "../../shared/limits.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { tickClock } from "../storage/clock.ts";

/** What a home's clock remembers of its last tick. */
export interface Tick {
  /** Of D1's clock row. */
  sequence: number;
  /** Milliseconds. */
  tickedAt: number;
  /** The last application whose object has compared itself with D1 since a restoration; null: all have. */
  compareAfter: string | null;
}

/**
 * Ticks D1's clock row. If it is behind, D1 was restored to an older state; if ticks were missed, it may have been. Then every
 * object of the home compares itself with D1 (contract section 21).
 *
 * @param before undefined: this is the first tick, or the object lost its storage
 */
export async function noteTick({ db, home, now }: Context, before: Tick | undefined): Promise<Tick> {
  const tickedAt = now();
  const sequence = await tickClock(db, tickedAt);
  const isBehind = before !== undefined && sequence <= before.sequence;
  if (isBehind) log("warn", { event: "restoration-noticed", home, sequence, expected: before.sequence + 1 });
  const wasAway = !before || Math.abs(tickedAt - before.tickedAt) > CLOCK_GAP_MILLISECONDS;
  return { sequence, tickedAt, compareAfter: isBehind || wasAway ? "" : before.compareAfter };
}
