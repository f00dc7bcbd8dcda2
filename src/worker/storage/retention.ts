import * as z from "zod";
import type { Database } from "./database.ts";

/**
 * Deletes rows that are over (contract section 18), by the order in which an application's rows were made. What must stay
 * lies between them (pending events, invitations of badges that live), so a chunk is a number of rows looked at. Badges are
 * never deleted: that a number is used up rests on them.
 */
export interface Deletable {
  /** Table, its key by age within an application, and the condition of what is over. `?1` … are `values`. */
  table: "webhook_event" | "invitation";
  key: "id" | "created_at";
  isOver: string;
  values: readonly (string | number)[];
  /** Rows from this key on are too young. */
  before: string | number;
}

/** A part of an application's rows: those after one key, up to and without another. */
export interface Stretch {
  applicationId: string;
  from: string | number;
  to: string | number;
}

/** @param eventIdsBefore the first characters of the IDs of events that are too young, delivered ones and others */
export const oldEvents = (eventIdsBefore: { delivered: string; undelivered: string }): Deletable => ({
  table: "webhook_event",
  key: "id",
  isOver: "(row.state = 'delivered' OR row.state IN ('exhausted', 'held') AND row.id < ?1)",
  values: [eventIdsBefore.undelivered],
  before: eventIdsBefore.delivered,
});

/** @param endedUntil the last millisecond in which those ended that are over */
export const oldInvitations = (endedUntil: number): Deletable => ({
  table: "invitation",
  key: "created_at",
  isOver: `(row.state IN ('revoked', 'expired') AND row.released_at <= ?1
    OR row.state = 'claimed' AND EXISTS (SELECT 1 FROM badge WHERE badge.number = row.number AND badge.ended_at <= ?1))`,
  values: [endedUntil],
  before: endedUntil + 1,
});

/** Looks at the oldest rows of every application. @returns how many were deleted */
export async function deleteOldest(db: Database, deletable: Deletable, perApplication: number): Promise<number> {
  const { table, key, isOver, values, before } = deletable;
  const sql = `
    DELETE FROM ${table} WHERE rowid IN (
      SELECT row.rowid FROM application CROSS JOIN ${table} AS row
      WHERE row.rowid IN (SELECT rowid FROM ${table} AS own
          WHERE own.application_id = application.id AND own.${key} < ?2 ORDER BY own.${key} LIMIT ?3)
        AND ${isOver})`;
  const { meta } = await db.run((_, d1) =>
    d1
      .prepare(sql)
      .bind(...values, before, perApplication)
      .run(),
  );
  return meta.changes;
}

const applicationRows = z.array(z.object({ id: z.string() }));

/** The applications that have rows in a stretch of keys. */
export async function findApplications(
  db: Database,
  { table, key }: Deletable,
  { from, to }: Omit<Stretch, "applicationId">,
): Promise<string[]> {
  const sql = `
    SELECT application.id AS id FROM application WHERE EXISTS (SELECT 1 FROM ${table} AS row
      WHERE row.application_id = application.id AND row.${key} >= ?1 AND row.${key} < ?2)`;
  const { results } = await db.run((_, d1) => d1.prepare(sql).bind(from, to).all());
  return applicationRows.parse(results).map(({ id }) => id);
}

const lastRows = z.array(z.object({ last: z.union([z.string(), z.number()]), rows: z.number() }));

/**
 * Looks at the first rows of a stretch.
 *
 * @returns how many were deleted, and what is left of the stretch; null when nothing is
 */
export async function deleteChunk(
  db: Database,
  deletable: Deletable,
  stretch: Stretch,
  limit: number,
): Promise<{ deleted: number; rest: Stretch | null }> {
  const { table, key, isOver, values } = deletable;
  const { applicationId, from, to } = stretch;
  const chunk = (columns: string, [first, second, third, fourth]: readonly string[]) => `
    SELECT ${columns} FROM ${table} AS own
    WHERE own.application_id = ${first} AND own.${key} >= ${second} AND own.${key} < ${third}
    ORDER BY own.${key} LIMIT ${fourth}`;
  const selectLast = `
    SELECT max(last) AS last, count(*) AS rows FROM (${chunk(`own.${key} AS last`, ["?1", "?2", "?3", "?4"])})
    HAVING count(*) > 0`;
  const deleteOver = `
    DELETE FROM ${table} AS row
    WHERE row.rowid IN (${chunk("own.rowid", ["?2", "?3", "?4", "?5"])}) AND ${isOver}`;
  const [selected, deleted] = await db.run((_, d1) =>
    d1.batch([
      d1.prepare(selectLast).bind(applicationId, from, to, limit),
      d1.prepare(deleteOver).bind(...values, applicationId, from, to, limit),
    ]),
  );
  const [chunkEnd] = lastRows.parse(selected?.results);
  const changes = deleted?.meta.changes ?? 0;
  if (!chunkEnd || chunkEnd.rows < limit) return { deleted: changes, rest: null };
  // Rows of one key may be on both sides of the chunk's end. A chunk of one key only is passed over.
  const next = chunkEnd.last === from ? after(from) : chunkEnd.last;
  return { deleted: changes, rest: { applicationId, from: next, to } };
}

const after = (key: string | number): string | number => (typeof key === "number" ? key + 1 : `${key} `);
