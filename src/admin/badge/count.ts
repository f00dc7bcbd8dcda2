import * as z from "zod";
import type { ApplicationRow } from "../application/record.ts";
import type { Database } from "../platform/database.ts";

/** Badges read by one statement: D1 runs one at a time, and every caller of the home waits for it. */
const CHUNK_BADGES = 10_000;

/** `last` is the chunk's last number with the key. */
const COUNT_CHUNK = `
  SELECT signing_key_id AS keyId, count(*) AS numbers, max(number) AS last,
    sum(ordinal IS NOT NULL AND state IN ('active', 'suspended')) AS badges,
    sum(ordinal IS NOT NULL AND ended_at IS NULL AND key_thumbprint IS NULL) AS unbound
  FROM (SELECT * FROM badge WHERE number > ?1 AND number <= ?2 ORDER BY number LIMIT ${CHUNK_BADGES})
  GROUP BY signing_key_id`;

const chunkRows = z.array(
  z.object({
    ...{ keyId: z.number().nullable(), numbers: z.number(), last: z.number() },
    ...{ badges: z.number(), unbound: z.number() },
  }),
);

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
    const { results } = await database.run((_, d1) => d1.prepare(COUNT_CHUNK).bind(after, lastNumber).all());
    const rows = chunkRows.parse(results);
    for (const row of rows) {
      byKey.set(row.keyId, (byKey.get(row.keyId) ?? 0) + row.badges);
      unbound += row.unbound;
    }
    if (rows.reduce((sum, { numbers }) => sum + numbers, 0) < CHUNK_BADGES) return { byKey, unbound };
    after = Math.max(...rows.map(({ last }) => last));
  }
}
