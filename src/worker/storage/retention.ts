import { type SQL, sql } from "drizzle-orm";
import { PURGE_CHUNK_ROWS } from "../../shared/limits/sweep-limits.ts";
import { history, webhookEvent } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { type Placeholders, query, type Statement, statement } from "./statement.ts";

/** Rows that are deleted when they are old (contract section 18). */

/** The last row that was scanned: its application and its ID. */
export type Checkpoint = readonly [applicationId: string, id: string];

interface ChunkValues {
  afterApplication: string;
  afterId: string;
  limit: number;
}

/** The statements of one table's chunks. */
interface Purge<Values extends object> {
  /** Returns the last row of a chunk; no row for the table's last chunk. */
  last: Statement<ChunkValues, { applicationId: string; id: string }>;
  deleteOld: Statement<ChunkValues & Values, never>;
}

/** @param isOld whether a row of a chunk is deleted */
function purgeOf<Values extends object>(
  table: typeof webhookEvent | typeof history,
  isOld: (placeholders: Placeholders<ChunkValues & Values>) => SQL,
): Purge<Values> {
  const key = sql`(${table.applicationId}, ${table.id})`;
  const rows = (p: Placeholders<ChunkValues>) =>
    sql`FROM ${table} WHERE ${key} > (${p.afterApplication}, ${p.afterId}) ORDER BY ${table.applicationId}, ${table.id}`;
  return {
    last: statement((p: Placeholders<ChunkValues>) =>
      query(
        { applicationId: sql<string>`${table.applicationId}`, id: sql<string>`${table.id}` },
        (fields) => sql`SELECT ${fields} ${rows(p)} LIMIT 1 OFFSET ${p.limit} - 1`,
      ),
    ),
    deleteOld: statement(
      (p: Placeholders<ChunkValues & Values>) =>
        sql`DELETE FROM ${table} WHERE ${key} IN (
          SELECT ${table.applicationId}, ${table.id} ${rows(p)} LIMIT ${p.limit}) AND ${isOld(p)}`,
    ),
  };
}

/** Events with lower IDs are old: delivered ones, and exhausted or held ones. */
export const OLD_EVENTS = purgeOf<{ delivered: string; undelivered: string }>(webhookEvent, (p) => {
  const { id, state } = webhookEvent;
  return sql`(${state} = 'delivered' AND ${id} < ${p.delivered}
    OR ${state} IN ('exhausted', 'held') AND ${id} < ${p.undelivered})`;
});

/** Rows with lower IDs are old. */
export const OLD_HISTORY = purgeOf<{ before: string }>(history, (p) => sql`${history.id} < ${p.before}`);

/**
 * Scans the next `PURGE_CHUNK_ROWS` rows of a table, and deletes the old ones. One round trip.
 *
 * @param after the last scanned row; null for the beginning
 * @returns the number of deleted rows, and the last row of the chunk; null at the end of the table
 */
export async function purgeChunk<Values extends object>(
  db: Database,
  { last, deleteOld }: Purge<Values>,
  values: Values,
  after: Checkpoint | null,
): Promise<{ deleted: number; next: Checkpoint | null }> {
  const [afterApplication, afterId] = after ?? ["", ""];
  const chunk = { afterApplication, afterId, limit: PURGE_CHUNK_ROWS };
  const [end, deleted] = await db.run((d1) =>
    d1.batch([last.bind(d1, chunk), deleteOld.bind(d1, { ...chunk, ...values })]),
  );
  const [row] = last.rows(end);
  return { deleted: deleted?.meta.changes ?? 0, next: row ? [row.applicationId, row.id] : null };
}
