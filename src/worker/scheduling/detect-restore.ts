import { TICK_GAP_MILLISECONDS } from "../../shared/limits/sweep-limits.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { beat } from "../storage/heartbeat.ts";

/** A home's last tick, as its scheduler stores it. */
export interface Tick {
  /** Sequence number of D1's heartbeat; `BEAT_PENDING` until the response of a beat has come. */
  sequence: number;
  /** Milliseconds. */
  tickedAt: number;
}

/** Below every sequence number, so that the next tick finds a different number in D1. */
export const BEAT_PENDING = -1;

/**
 * Advances D1's heartbeat. D1 may have been restored if it does not have the sequence number of the last tick, or if ticks were
 * missed. The number is also different after a lost response, which may hide a restore. Then every allocator of the home compares
 * itself with D1. Replicas are not trusted until all have, or could not be reached for ten minutes.
 *
 * @param before undefined for the first tick, and after the object lost its storage
 * @returns `isInDoubt`: whether D1 may have been restored
 * @throws Unavailable
 */
export async function recordTick(
  { db, home, now }: Context,
  before: Tick | undefined,
): Promise<Tick & { isInDoubt: boolean }> {
  const tickedAt = now();
  const { found, sequence } = await beat(db, before?.sequence ?? 0);
  if (before && found < before.sequence) {
    log("warn", { event: "restore-noticed", home, sequence: found, expected: before.sequence });
  }
  const wasAway = !before || Math.abs(tickedAt - before.tickedAt) > TICK_GAP_MILLISECONDS;
  return { sequence, tickedAt, isInDoubt: wasAway || found !== before.sequence };
}
