import { and, asc, count, gt, lte, sql } from "drizzle-orm";
import { badge } from "../../shared/schema.ts";
import type { ApplicationRow } from "../application/record.ts";
import type { Database, Orm } from "../platform/database.ts";

/** Badges read by one statement: D1 runs one at a time, and every caller of the home waits for it. */
const CHUNK_BADGES = 10_000;

/** Counts a chunk of badges after a number by their keys. `last` is the chunk's last number with the key. */
function countChunk(orm: Orm, after: number, lastNumber: number) {
  const { number, signingKeyId, ordinal, state, endedAt, keyThumbprint } = badge;
  const chunk = orm
    .select({ number, signingKeyId, ordinal, state, endedAt, keyThumbprint })
    .from(badge)
    .where(and(gt(number, after), lte(number, lastNumber)))
    .orderBy(asc(number))
    .limit(CHUNK_BADGES)
    .as("chunk");
  return orm
    .select({
      keyId: chunk.signingKeyId,
      numbers: count(),
      last: sql<number>`max(${chunk.number})`,
      badges: sql<number>`sum(${chunk.ordinal} IS NOT NULL AND ${chunk.state} IN ('active', 'suspended'))`,
      unbound: sql<number>`sum(${chunk.ordinal} IS NOT NULL AND ${chunk.endedAt} IS NULL AND ${chunk.keyThumbprint} IS NULL)`,
    })
    .from(chunk)
    .groupBy(chunk.signingKeyId);
}

/**
 * Counts an application's badges for each signing key, without those that are revoked or replaced, and its unbound badges
 * that have not ended. It reads in chunks, so that D1 serves others in between.
 */
export async function countBadges(
  database: Database,
  { firstNumber, lastNumber }: Pick<ApplicationRow, "firstNumber" | "lastNumber">,
): Promise<{ byKey: Map<number | null, number>; unbound: number }> {
  const byKey = new Map<number | null, number>();
  let unbound = 0;
  for (let after = firstNumber - 1; ; ) {
    const rows = await database.run((orm) => countChunk(orm, after, lastNumber));
    for (const row of rows) {
      byKey.set(row.keyId, (byKey.get(row.keyId) ?? 0) + row.badges);
      unbound += row.unbound;
    }
    if (rows.reduce((sum, { numbers }) => sum + numbers, 0) < CHUNK_BADGES) return { byKey, unbound };
    after = Math.max(...rows.map(({ last }) => last));
  }
}
