import { and, asc, count, gt, lte, sql } from "drizzle-orm";
import { badge } from "../../shared/schema.ts";
import type { ApplicationRow } from "../application/record.ts";
import type { Database, Orm } from "../platform/database.ts";

/** Badges of one statement: D1 carries out one at a time, and all callers of the home wait for it. */
const CHUNK_BADGES = 10_000;

/** Badges after a number, counted by their keys. `last`: the last number of the chunk that has the key. */
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
 * Counts an application's badges that were neither revoked nor replaced by their signing keys, and those that have not ended and
 * are bound to no key. In chunks, between which the service is served.
 */
export async function countBadges(
  database: Database,
  { firstNumber, lastNumber }: Pick<ApplicationRow, "firstNumber" | "lastNumber">,
): Promise<{ ofKey: Map<number | null, number>; unbound: number }> {
  const ofKey = new Map<number | null, number>();
  let unbound = 0;
  for (let after = firstNumber - 1; ; ) {
    const rows = await database.run((orm) => countChunk(orm, after, lastNumber));
    for (const row of rows) {
      ofKey.set(row.keyId, (ofKey.get(row.keyId) ?? 0) + row.badges);
      unbound += row.unbound;
    }
    if (rows.reduce((sum, { numbers }) => sum + numbers, 0) < CHUNK_BADGES) return { ofKey, unbound };
    after = Math.max(...rows.map(({ last }) => last));
  }
}
