import { sql } from "drizzle-orm";
import { MAX_REPLICA_AGE_SECONDS, REPLICA_CLOCK_SKEW_SECONDS } from "../../shared/limits/cache-limits.ts";
import { heartbeat } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { type Placeholders, query, statement } from "./statement.ts";

/**
 * D1's heartbeat, which the home's scheduler writes every minute. The scheduler also stores the last sequence number: if
 * D1's next number is not higher, D1 was restored to an older state. A replica is at least as new as its heartbeat's time.
 */

/**
 * Whether a replica of D1 is recent enough to accept a badge (contract section 16).
 *
 * @param tickedAt time of the heartbeat in the replica, milliseconds
 * @param now milliseconds
 */
export function isRecent(tickedAt: number | null, now: number): boolean {
  if (tickedAt === null) return false;
  const age = now - tickedAt;
  return age < MAX_REPLICA_AGE_SECONDS * 1000 && age > -REPLICA_CLOCK_SKEW_SECONDS * 1000;
}

const [id, sequence, tickedAt] = [heartbeat.id, heartbeat.sequence, heartbeat.tickedAt].map(({ name }) =>
  sql.identifier(name),
);

const BEAT = statement(() =>
  query(
    { sequence: heartbeat.sequence },
    (columns) => sql`INSERT INTO ${heartbeat} (${id}, ${sequence}, ${tickedAt}) VALUES (1, 1, 0)
      ON CONFLICT (${id}) DO UPDATE SET ${sequence} = ${sequence} + 1 RETURNING ${columns}`,
  ),
);

/**
 * Increments the heartbeat's sequence number. One round trip.
 *
 * @returns the new number, and whether an earlier try may have incremented it, too
 */
export async function beat(db: Database): Promise<{ sequence: number; isRepeated: boolean }> {
  let tries = 0;
  const [row] = await db.run((d1) => {
    tries++;
    return BEAT.all(d1, {});
  });
  if (!row) throw new Error("D1 did not return the heartbeat");
  return { sequence: row.sequence, isRepeated: tries > 1 };
}

const STAMP = statement(
  (p: Placeholders<{ now: number }>) => sql`UPDATE ${heartbeat} SET ${tickedAt} = ${p.now} WHERE ${heartbeat.id} = 1`,
);

/** Stores the time from which a replica's age is computed. One round trip. @param now milliseconds */
export async function stampHeartbeat(db: Database, now: number): Promise<void> {
  await db.write(STAMP, { now });
}
