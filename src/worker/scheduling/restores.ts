import { TICK_GAP_MILLISECONDS } from "../../shared/limits/sweep-limits.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { beat } from "../storage/heartbeat.ts";

/** A home's last tick, as its scheduler stores it. */
export interface Tick {
  /** Of D1's heartbeat. */
  sequence: number;
  /** Milliseconds. */
  tickedAt: number;
  /** The last application whose allocator has compared since a restore; null: all have. */
  compareAfter: string | null;
}

/**
 * Moves D1's heartbeat on. If the row is behind, D1 was restored to an older state. If it is ahead, D1 may have been restored to a
 * later state, and so it may after missed ticks. Then every allocator of the home compares itself with D1. Replicas are not trusted
 * until all have.
 *
 * @param before undefined for the first tick, and after the object lost its storage
 * @throws Unavailable
 */
export async function recordTick({ db, home, now }: Context, before: Tick | undefined): Promise<Tick> {
  const tickedAt = now();
  const sequence = await beat(db);
  const isBehind = before !== undefined && sequence <= before.sequence;
  if (isBehind) log("warn", { event: "restore-noticed", home, sequence, expected: before.sequence + 1 });
  const wasAway = !before || Math.abs(tickedAt - before.tickedAt) > TICK_GAP_MILLISECONDS;
  // Or the response of the last beat was lost.
  const isAhead = before !== undefined && sequence > before.sequence + 1;
  const compareAfter = isBehind || isAhead || wasAway ? "" : before.compareAfter;
  return { sequence, tickedAt, compareAfter };
}
