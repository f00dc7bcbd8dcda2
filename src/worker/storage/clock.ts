import * as z from "zod";
import { COPY_CLOCK_SKEW_SECONDS, MAX_COPY_AGE_SECONDS } from "../../shared/limits.ts";
import type { Database } from "./database.ts";

/**
 * D1's clock row, which the sweep writes every minute. One Durable Object remembers the highest sequence number that it has
 * seen: if D1's is not ahead of that, D1 was restored to an older state. And a copy of D1 is at least as new as the time in
 * its row.
 */

/** When the row was written, in milliseconds, as an SQL expression; null: never. */
export const TICKED_AT = "(SELECT ticked_at FROM clock WHERE id = 1)";

/**
 * Whether a copy of D1 is recent enough to accept a badge (contract section 16).
 *
 * @param tickedAt as the copy has it
 * @param now milliseconds
 */
export function isRecent(tickedAt: number | null, now: number): boolean {
  if (tickedAt === null) return false;
  const age = now - tickedAt;
  return age < MAX_COPY_AGE_SECONDS * 1000 && age > -COPY_CLOCK_SKEW_SECONDS * 1000;
}

const TICK = `
  INSERT INTO clock (id, sequence, ticked_at) VALUES (1, 1, ?1)
  ON CONFLICT (id) DO UPDATE SET sequence = sequence + 1, ticked_at = ?1
  RETURNING sequence`;

/** Every cursor of every application's feed expires. In the transaction of the tick: a crash leaves both or neither. */
const RENEW_EPOCHS = `
  UPDATE application SET feed_epoch = lower(hex(randomblob(16)))
  FROM clock WHERE clock.id = 1 AND clock.sequence <= ?1`;

const sequenceRows = z.tuple([z.object({ sequence: z.number() })]);

/**
 * Increases the sequence number, and expires all cursors when D1 was restored to an older state.
 *
 * @param seen a sequence number that was read before this call
 * @returns the new sequence number; not above `seen` after a restoration
 */
export async function tickClock(db: Database, seen: number, now: number): Promise<number> {
  const [ticked] = await db.run((_, d1) => d1.batch([d1.prepare(TICK).bind(now), d1.prepare(RENEW_EPOCHS).bind(seen)]));
  return sequenceRows.parse(ticked?.results)[0].sequence;
}
