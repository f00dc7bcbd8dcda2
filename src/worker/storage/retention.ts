import * as z from "zod";
import type { Database } from "./database.ts";

/** Rows that are deleted when they are old (contract section 18). Nothing that the uniqueness of a number rests on is. */
export interface PurgeRule {
  table: "webhook_event" | "history";
  /** The key in whose order the table is scanned, in one text column: SQL expressions of a row. */
  key: readonly string[];
  /** An SQL condition on a row; its parameters begin with `?3`. */
  isDeletable: string;
  values: readonly (string | number)[];
}

/** @param made event IDs before these are old: of delivered events, and of exhausted and held ones */
export const oldEvents = (made: { delivered: string; undelivered: string }): PurgeRule => ({
  table: "webhook_event",
  key: ["application_id", "id"],
  isDeletable: "(state = 'delivered' AND id < ?3 OR state IN ('exhausted', 'held') AND id < ?4)",
  values: [made.delivered, made.undelivered],
});

/** @param madeBefore history IDs before this are old */
export const oldHistory = (madeBefore: string): PurgeRule => ({
  table: "history",
  key: ["application_id", "id"],
  isDeletable: "id < ?3",
  values: [madeBefore],
});

const lastRow = z.record(z.string(), z.string()).optional();

/**
 * Scans the next rows of a table, and deletes the old ones of them. One round trip.
 *
 * @param after the key of the last row that was scanned; null: from the beginning
 * @returns how many were deleted, and the key for the next chunk; null at the end
 */
export async function purgeChunk(
  db: Database,
  { table, key, isDeletable, values }: PurgeRule,
  after: readonly string[] | null,
  limit: number,
): Promise<{ deleted: number; next: string[] | null }> {
  const columns = key.join(", ");
  const start = JSON.stringify(after ?? key.map(() => ""));
  const isAfter = `(${columns}) > (${key.map((_, index) => `?1 ->> '$[${index}]'`).join(", ")})`;
  const chunk = `SELECT ${columns} FROM ${table} WHERE ${isAfter} ORDER BY ${columns} LIMIT ?2`;
  const [last, deleted] = await db.run((d1) =>
    d1.batch([
      d1
        .prepare(`SELECT ${columns} FROM ${table} WHERE ${isAfter} ORDER BY ${columns} LIMIT 1 OFFSET ?2 - 1`)
        .bind(start, limit),
      d1
        .prepare(`DELETE FROM ${table} WHERE (${columns}) IN (${chunk}) AND ${isDeletable}`)
        .bind(start, limit, ...values),
    ]),
  );
  const row = lastRow.parse(last?.results[0]);
  return { deleted: deleted?.meta.changes ?? 0, next: row ? key.map((column) => row[column] ?? "") : null };
}
