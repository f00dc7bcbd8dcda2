import type * as z from "zod";
import { MAX_ROWS_PER_ITEM, MAX_ROWS_PER_PAGE } from "../../shared/limits.ts";
import type { Database } from "./database.ts";

/** Binds a value to a statement and returns its parameter. */
export type Bind = (value: unknown) => string;

/** A page of a list, as the rows of a table that it looks at and those that it lists. */
export interface Scan<Row> {
  /** With INDEXED BY where SQLite would otherwise read the whole table in the wanted order, as those WITHOUT ROWID. */
  table: string;
  /** What of each row is looked at: `*`, and `rowid` where that is needed. */
  selected?: string;
  /**
   * SQL conditions, each of which an index finds without reading other rows. Together they have everything that is listed. They
   * include where the page starts.
   */
  ranges(bind: Bind): readonly string[];
  /** By which the rows of a range come from its index, as SQL. */
  order: string;
  /** SQL conditions for a row to be listed; none: all are. */
  conditions?(bind: Bind): readonly string[];
  /** What is listed of each row of `scanned`, as SQL. */
  columns: string;
  rows: z.ZodType<Row[]>;
  perPage: number;
}

/** A page of rows; `last` is the row after which the next page starts, whether or not it is listed; null: nothing follows. */
export interface ScannedPage<Row> {
  items: Row[];
  last: Row | null;
}

/**
 * How many rows a page may look at (contract section 24): half of what it may read, because a page that ends early reads them once
 * more to see where.
 */
export const scanLimit = (perPage: number): number => (MAX_ROWS_PER_ITEM * perPage + MAX_ROWS_PER_PAGE) / 2;

/**
 * Reads a page. One round trip; two when it ends early, because it has looked at `limit` rows and listed too few of them.
 *
 * @param limit for a page with conditions
 */
export async function scanPage<Row>(
  db: Database,
  scan: Scan<Row>,
  limit = scanLimit(scan.perPage),
): Promise<ScannedPage<Row>> {
  const { columns, perPage } = scan;
  const values: unknown[] = [];
  const bind = (value: unknown) => `?${values.push(value)}`;
  const ranges = scan.ranges(bind);
  const rangeValues = [...values];
  const conditions = scan.conditions?.(bind) ?? [];
  const isFiltered = conditions.length > 0;
  const rowsOfPage = scannedRows(scan, ranges, isFiltered ? limit : perPage + 1);
  // Rows leave the inner statement in its order. To order them again would read all of them before the first is listed.
  const page = `SELECT ${columns} FROM (${rowsOfPage}) AS scanned
    ${isFiltered ? `WHERE ${conditions.join(" AND ")}` : ""} LIMIT ${perPage + 1}`;
  const rows = await read(db, scan, page, values);
  const items = rows.slice(0, perPage);
  if (rows.length > perPage) return { items, last: items.at(-1) ?? null };
  if (!isFiltered) return { items, last: null };
  const end = `SELECT ${columns} FROM (${rowsOfPage}) AS scanned LIMIT 1 OFFSET ${limit - 1}`;
  const [last = null] = await read(db, scan, end, rangeValues);
  return { items, last };
}

function scannedRows(
  { table, selected = "*", order }: Scan<unknown>,
  ranges: readonly string[],
  limit: number,
): string {
  const scans = ranges.map(
    (range) => `SELECT ${selected} FROM ${table} WHERE ${range} ORDER BY ${order} LIMIT ${limit}`,
  );
  if (scans.length === 1) return scans.join();
  return `SELECT * FROM (${scans.map((one) => `SELECT * FROM (${one})`).join(" UNION ALL ")}) ORDER BY ${order} LIMIT ${limit}`;
}

async function read<Row>(db: Database, { rows }: Scan<Row>, sql: string, values: readonly unknown[]): Promise<Row[]> {
  const { results } = await db.run((d1) =>
    d1
      .prepare(sql)
      .bind(...values)
      .all(),
  );
  return rows.parse(results);
}
