import { eq, sql } from "drizzle-orm";
import { MAX_REPLICA_AGE_SECONDS, REPLICA_CLOCK_SKEW_SECONDS } from "../../shared/limits/cache-limits.ts";
import { heartbeat } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { orm, type Placeholders, statement } from "./statement.ts";

/**
 * D1's heartbeat, which the home's scheduler writes every minute. The scheduler also stores the last sequence number: if D1 has
 * a different one at the next tick, D1 may have been restored. A replica is at least as new as its heartbeat's time.
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

const SELECT_SEQUENCE = statement(() =>
  orm.select({ sequence: heartbeat.sequence }).from(heartbeat).where(eq(heartbeat.id, 1)),
);

const BEAT = statement(
  (p: Placeholders<{ own: number; step: number }>) => sql`INSERT INTO ${heartbeat} (${id}, ${sequence}, ${tickedAt})
    VALUES (1, max(0, ${p.own}) + ${p.step}, 0)
    ON CONFLICT (${id}) DO UPDATE SET ${sequence} = max(${sequence}, ${p.own}) + ${p.step}`,
);

const MAX_HEARTBEAT_STEP = 2 ** 20;

/** Each try has its own step, so a try that D1 carries out late, after a restore, does not produce the expected number. */
const newStep = (): number => 1 + Math.floor(Math.random() * MAX_HEARTBEAT_STEP);

/**
 * Moves the heartbeat's sequence number past D1's and the scheduler's. One round trip. If D1 carries it out twice, the second time
 * finds the number of the first, which looks like a restore.
 *
 * @param own the number that the scheduler has
 * @returns the number that D1 had, 0 at first, and the new one
 */
export async function beat(db: Database, own: number): Promise<{ found: number; sequence: number }> {
  let step = 0;
  const [before] = await db.run((d1) => {
    step = newStep();
    return d1.batch([SELECT_SEQUENCE.bind(d1, {}), BEAT.bind(d1, { own, step })]);
  });
  const found = SELECT_SEQUENCE.rows(before)[0]?.sequence ?? 0;
  return { found, sequence: Math.max(found, own) + step };
}

const STAMP = statement(
  (p: Placeholders<{ now: number }>) => sql`UPDATE ${heartbeat} SET ${tickedAt} = ${p.now} WHERE ${heartbeat.id} = 1`,
);

/** Stores the time from which a replica's age is computed. One round trip. @param now milliseconds */
export async function stampHeartbeat(db: Database, now: number): Promise<void> {
  await db.write(STAMP, { now });
}
