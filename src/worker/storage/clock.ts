import * as z from "zod";
import { COPY_CLOCK_SKEW_SECONDS, MAX_COPY_AGE_SECONDS } from "../../shared/limits.ts";
import type { Database } from "./database.ts";

/**
 * D1's clock row, which the home's clock object writes every minute. The object remembers the last sequence number: if D1's is
 * not ahead of that, D1 was restored to an older state. And a replica of D1 is at least as new as the time in its row.
 */

/** When the row was written, in milliseconds, as an SQL expression; null: never. */
export const TICKED_AT = "(SELECT ticked_at FROM clock WHERE id = 1)";

/**
 * Whether a replica of D1 is recent enough to accept a badge (contract section 16).
 *
 * @param tickedAt as the replica has it
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

const sequenceRow = z.object({ sequence: z.number() });

/** @returns the new sequence number */
export async function tickClock(db: Database, now: number): Promise<number> {
  const [row] = await db.rows(sequenceRow, TICK, [now]);
  return sequenceRow.parse(row).sequence;
}
