import { TICK_GAP_MILLISECONDS } from "../../shared/limits/sweep-limits.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { beat } from "../storage/heartbeat.ts";

/** A home's last tick, as its scheduler stores it. */
export interface Tick {
  /** Sequence number of D1's heartbeat; `BEATING` until the response of a beat has come. */
  sequence: number;
  /** Milliseconds. */
  tickedAt: number;
  /** Where the comparison after a restore continues: after this application; empty at its start; null when it is done. */
  compareAfter: string | null;
}

/** Below every sequence number, so that the next tick finds D1 too far ahead. */
export const BEATING = -1;

/**
 * Increments D1's heartbeat. If its sequence number is too low, D1 was restored to an older state. If it is too high, the response
 * of a beat was lost, or ticks were missed, D1 may have been restored. In these cases every allocator of the home compares itself
 * with D1. Replicas are not trusted until all have, or could not be reached for ten minutes.
 *
 * @param before undefined for the first tick, and after the object lost its storage
 * @throws Unavailable
 */
export async function recordTick({ db, home, now }: Context, before: Tick | undefined): Promise<Tick> {
  const tickedAt = now();
  const { sequence, isRepeated } = await beat(db);
  const isBehind = before !== undefined && sequence <= before.sequence;
  if (isBehind) log("warn", { event: "restore-noticed", home, sequence, expected: before.sequence + 1 });
  const wasAway = !before || Math.abs(tickedAt - before.tickedAt) > TICK_GAP_MILLISECONDS;
  // Beats whose responses were lost can make up for those that a restore has undone.
  const isUnsure = isRepeated || (before !== undefined && sequence > before.sequence + 1);
  const compareAfter = isBehind || isUnsure || wasAway ? "" : before.compareAfter;
  return { sequence, tickedAt, compareAfter };
}
