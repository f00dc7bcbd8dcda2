import { getTableColumns, sql } from "drizzle-orm";
import { INSERTED_ROWS } from "../../../shared/limits/allocator-limits.ts";
import { ROW_KEYS, type RowTable } from "../log-entry.ts";
import { badge, blockedUser, erasure, freedNumber, invitation } from "./schema.ts";
import type { Orm } from "./tables.ts";

/** Many rows of the allocator's four tables at once: for the copy from D1, and for comparing with it. */

const ROW_TABLES = { badge, invitation, blockedUser, freedNumber } as const satisfies Record<RowTable, unknown>;

export type StoredRow = Record<string, unknown>;

export function insertRows(orm: Orm, table: RowTable, rows: readonly StoredRow[]): void {
  const names = Object.keys(getTableColumns(ROW_TABLES[table]));
  const columns = Object.values(getTableColumns(ROW_TABLES[table])).map(({ name }) => sql.identifier(name));
  const values = names.map((_, index) => sql`value ->> ${sql.raw(`'$[${index}]'`)}`);
  for (let start = 0; start < rows.length; start += INSERTED_ROWS) {
    const some = rows.slice(start, start + INSERTED_ROWS);
    const json = JSON.stringify(some.map((row) => names.map((name) => row[name] ?? null)));
    orm.run(sql`INSERT OR REPLACE INTO ${ROW_TABLES[table]} (${sql.join(columns, sql`, `)})
      SELECT ${sql.join(values, sql`, `)} FROM json_each(${json})`);
  }
}

export function clearRows(orm: Orm): void {
  for (const table of [badge, invitation, blockedUser, freedNumber, erasure]) {
    orm.delete(table).run();
  }
}

const KEYS = {
  badge: badge.number,
  invitation: invitation.digest,
  blockedUser: blockedUser.userId,
  freedNumber: freedNumber.number,
} as const satisfies Record<RowTable, unknown>;

/** The rows of a table in the order of its key. @param after null: from the beginning */
export function rowsAfter(orm: Orm, table: RowTable, after: string | number | null, limit: number): StoredRow[] {
  const key = KEYS[table];
  const from = orm.select().from(ROW_TABLES[table]);
  const rows = after === null ? from : from.where(sql`${key} > ${after}`);
  return rows.orderBy(key).limit(limit).all();
}

/** The rows with these keys, by key. */
export function rowsByKey(orm: Orm, table: RowTable, keys: readonly (string | number)[]): Map<unknown, StoredRow> {
  const wanted = sql`(SELECT value FROM json_each(${JSON.stringify(keys)}))`;
  const rows: StoredRow[] = orm.select().from(ROW_TABLES[table]).where(sql`${KEYS[table]} IN ${wanted}`).all();
  return new Map(rows.map((row) => [row[ROW_KEYS[table]], row]));
}
