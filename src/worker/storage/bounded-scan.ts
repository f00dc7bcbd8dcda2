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

/** How many rows a page may look at: half of what it may read (contract section 24), because they are read twice. */
export const scanLimit = (perPage: number): number => (MAX_ROWS_PER_ITEM * perPage + MAX_ROWS_PER_PAGE) / 2;

/**
 * Reads a page. One round trip.
 *
 * @param limit for a page with conditions: it ends early when it has looked at so many rows
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
  const end = `SELECT ${columns} FROM (${rowsOfPage}) AS scanned LIMIT 1 OFFSET ${limit - 1}`;
  // In one transaction: between two, rows would come and go, and the next page begin too late or too early.
  const results = await db.run((d1) =>
    d1.batch([d1.prepare(page).bind(...values), ...(isFiltered ? [d1.prepare(end).bind(...rangeValues)] : [])]),
  );
  const [rows = [], [last = null] = []] = results.map((each) => scan.rows.parse(each.results));
  const items = rows.slice(0, perPage);
  return { items, last: rows.length > perPage ? (items.at(-1) ?? null) : last };
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
