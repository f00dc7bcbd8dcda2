import * as z from "zod";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import type { Database } from "./database.ts";

/**
 * Which rows of a table are deleted (contract section 18). An application's rows are scanned in the order in which they were
 * made. Rows that must stay lie in between (pending events, invitations of live badges), so a chunk counts scanned rows, not
 * deleted ones. Badges are never deleted: they are the record of which numbers are used.
 */
export interface PurgeRule {
  /** The table, its key that orders an application's rows by age, and the condition for deleting; `?1` … are `values`. */
  table: "webhook_event" | "invitation";
  key: "id" | "created_at";
  /**
   * Identifies a row among those of its application, and alone if it is the row ID. The condition on the application then
   * needs a plus sign, or SQLite reads all rows of the application.
   */
  rowKey: "id" | "rowid";
  isDeletable: string;
  values: readonly (string | number)[];
  /** Rows with this key or a greater one are too young. */
  before: string | number;
}

/** An application's rows with keys `from` (included) to `to` (excluded). */
export interface KeyRange {
  applicationId: ApplicationId;
  from: string | number;
  to: string | number;
}

/** @param eventIdsBefore prefixes of event IDs: delivered and undelivered events with smaller IDs are deleted */
export const oldEvents = (eventIdsBefore: { delivered: string; undelivered: string }): PurgeRule => ({
  table: "webhook_event",
  key: "id",
  rowKey: "id",
  isDeletable: "(row.state = 'delivered' OR row.state IN ('exhausted', 'held') AND row.id < ?1)",
  values: [eventIdsBefore.undelivered],
  before: eventIdsBefore.delivered,
});

/** @param endedUntil invitations that ended until this millisecond are deleted */
export const oldInvitations = (endedUntil: number): PurgeRule => ({
  table: "invitation",
  key: "created_at",
  rowKey: "rowid",
  isDeletable: `(row.state IN ('revoked', 'expired') AND row.released_at <= ?1
    OR row.state = 'claimed' AND EXISTS (SELECT 1 FROM badge WHERE badge.number = row.number AND badge.ended_at <= ?1))`,
  values: [endedUntil],
  before: endedUntil + 1,
});

const ownerOf = ({ rowKey }: PurgeRule): string => (rowKey === "rowid" ? "+row.application_id" : "row.application_id");

/** Scans the oldest rows of every application. @returns how many were deleted */
export async function deleteOldest(db: Database, rule: PurgeRule, perApplication: number): Promise<number> {
  const { table, key, rowKey, isDeletable, values, before } = rule;
  const sql = `
    DELETE FROM ${table} WHERE ${rowKey === "rowid" ? "rowid" : "(id, application_id)"} IN (
      SELECT row.${rowKey}${rowKey === "rowid" ? "" : ", application.id"} FROM application CROSS JOIN ${table} AS row
      WHERE ${ownerOf(rule)} = application.id AND row.${rowKey} IN (SELECT own.${rowKey} FROM ${table} AS own
          WHERE own.application_id = application.id AND own.${key} < ?2 ORDER BY own.${key} LIMIT ?3)
        AND ${isDeletable})`;
  const { meta } = await db.run((_, d1) =>
    d1
      .prepare(sql)
      .bind(...values, before, perApplication)
      .run(),
  );
  return meta.changes;
}

const applicationRows = z.array(z.object({ id: applicationId }));

/** IDs of the applications that have rows in a range of keys. */
export async function findApplications(
  db: Database,
  { table, key }: PurgeRule,
  { from, to }: Omit<KeyRange, "applicationId">,
): Promise<ApplicationId[]> {
  const sql = `
    SELECT application.id AS id FROM application WHERE EXISTS (SELECT 1 FROM ${table} AS row
      WHERE row.application_id = application.id AND row.${key} >= ?1 AND row.${key} < ?2)`;
  const { results } = await db.run((_, d1) => d1.prepare(sql).bind(from, to).all());
  return applicationRows.parse(results).map(({ id }) => id);
}

const lastRows = z.array(z.object({ last: z.union([z.string(), z.number()]), rows: z.number() }));

/**
 * Scans the first rows of a range.
 *
 * @returns how many were deleted, and the rest of the range; null when nothing is left
 */
export async function deleteChunk(
  db: Database,
  rule: PurgeRule,
  range: KeyRange,
  limit: number,
): Promise<{ deleted: number; rest: KeyRange | null }> {
  const { table, key, rowKey, isDeletable, values } = rule;
  const { applicationId, from, to } = range;
  const chunk = (selected: string, [first, second, third, fourth]: readonly string[]) => `
    SELECT ${selected} FROM ${table} AS own
    WHERE own.application_id = ${first} AND own.${key} >= ${second} AND own.${key} < ${third}
    ORDER BY own.${key} LIMIT ${fourth}`;
  const selectLast = `
    SELECT max(last) AS last, count(*) AS rows FROM (${chunk(`own.${key} AS last`, ["?1", "?2", "?3", "?4"])})
    HAVING count(*) > 0`;
  const deleteMatching = `
    DELETE FROM ${table} AS row
    WHERE ${ownerOf(rule)} = ?2 AND row.${rowKey} IN (${chunk(`own.${rowKey}`, ["?2", "?3", "?4", "?5"])})
      AND ${isDeletable}`;
  const [selected, deleted] = await db.run((_, d1) =>
    d1.batch([
      d1.prepare(selectLast).bind(applicationId, from, to, limit),
      d1.prepare(deleteMatching).bind(...values, applicationId, from, to, limit),
    ]),
  );
  const [chunkEnd] = lastRows.parse(selected?.results);
  const changes = deleted?.meta.changes ?? 0;
  if (!chunkEnd || chunkEnd.rows < limit) return { deleted: changes, rest: null };
  // Rows with the last key may lie beyond the chunk, so the rest starts with that key; unless all of the chunk has it.
  const next = chunkEnd.last === from ? after(from) : chunkEnd.last;
  return { deleted: changes, rest: { applicationId, from: next, to } };
}

const after = (key: string | number): string | number => (typeof key === "number" ? key + 1 : `${key} `);
