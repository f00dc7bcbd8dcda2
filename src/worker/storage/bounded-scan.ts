import { and, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { MAX_ROWS_PER_ITEM, MAX_ROWS_PER_PAGE } from "../../shared/limits/request-limits.ts";
import type { Database } from "./database.ts";
import {
  type Fields,
  type Placeholders,
  placeholdersOf,
  query,
  type Returning,
  type RowOf,
  type Statement,
  statement,
} from "./statement.ts";

/** A page of a list: the index ranges to scan, and the conditions for rows to be listed. */
interface Scan<Selected extends Fields> {
  /**
   * INDEXED BY is needed where SQLite would otherwise read the whole table in the wanted order, as it does with tables
   * WITHOUT ROWID.
   */
  table: SQLWrapper;
  /** The columns to scan, if not all. */
  selected?: SQL;
  /**
   * Conditions, each of which is one index range. Together they cover all listed rows. They include the start of the
   * page.
   */
  ranges: readonly (SQL | undefined)[];
  /** The order of rows in a range's index, as names without a table. */
  order: SQL;
  /** Conditions on `scanned` for a row to be listed; without any, all rows are. */
  conditions?: readonly (SQL | undefined)[];
  /** The listed fields of each row of `scanned`. */
  fields: Selected;
}

interface Limits {
  /** One more than the page's length. */
  limit: number;
  /** Maximum number of scanned rows. */
  scanned: number;
}

/** The statements of a page. */
interface ScanStatements<Values, Row> {
  page: Statement<Values & Limits, Row>;
  /** Returns the last scanned row of a page with conditions; null if the page has none, so that every row is listed. */
  end: Statement<Values & Limits, Row> | null;
}

/** A page of rows. `last` is the row after which the next page starts, listed or not; null if nothing follows. */
export interface ScannedPage<Row> {
  items: Row[];
  last: Row | null;
}

/** Rows that a page may scan: half of those that it may read (contract section 24), because each is read twice. */
export const scanLimit = (perPage: number): number => (MAX_ROWS_PER_ITEM * perPage + MAX_ROWS_PER_PAGE) / 2;

/** The table's alias in `fields` and `conditions` (Drizzle's `alias`). */
export const SCANNED = "scanned";

/** Where the first page begins of a list that begins with the newest ID: IDs have no tilde. */
export const AFTER_ALL_IDS = "~";

/** The statements of one shape of a list, built once. */
export function scanStatements<Values extends object, Selected extends Fields>(
  build: (placeholders: Placeholders<Values>) => Scan<Selected>,
): ScanStatements<Values, RowOf<Returning<Selected>>> {
  const placeholders = placeholdersOf<Values & Limits>();
  const scan = build(placeholders);
  const { limit, scanned } = placeholdersOf<Limits>();
  const conditions = and(...(scan.conditions ?? []));
  const rows = rowsOf(scan, conditions ? scanned : limit);
  const select = (rest: SQL) =>
    statement((_: Placeholders<Values & Limits>) =>
      query(scan.fields, (fields) => sql`SELECT ${fields} FROM (${rows}) AS ${sql.identifier(SCANNED)} ${rest}`),
    );
  // No outer ORDER BY: it would read all rows before the first is listed. The inner statement's order is kept.
  if (!conditions) return { page: select(sql``), end: null };
  return { page: select(sql`WHERE ${conditions} LIMIT ${limit}`), end: select(sql`LIMIT 1 OFFSET ${scanned} - 1`) };
}

function rowsOf({ table, selected = sql`*`, ranges, order }: Scan<Fields>, limit: SQLWrapper): SQL {
  const [first = sql``, ...others] = ranges.map(
    (range) => sql`SELECT ${selected} FROM ${table} WHERE ${range} ORDER BY ${order} LIMIT ${limit}`,
  );
  if (others.length === 0) return first;
  const all = sql.join(
    [first, ...others].map((rows) => sql`SELECT * FROM (${rows})`),
    sql` UNION ALL `,
  );
  return sql`SELECT * FROM (${all}) ORDER BY ${order} LIMIT ${limit}`;
}

/**
 * Reads a page. One round trip.
 *
 * @param scanned maximum of scanned rows of a page with conditions, which then ends early
 */
export async function scanPage<Values extends object, Row>(
  db: Database,
  { page, end }: ScanStatements<Values, Row>,
  values: Values,
  perPage: number,
  scanned = scanLimit(perPage),
): Promise<ScannedPage<Row>> {
  const bound = { ...values, limit: perPage + 1, scanned };
  if (end === null) return pageOf(await db.all(page, bound), perPage, null);
  // In one transaction: otherwise rows could change in between, and the next page would begin too late or too early.
  const [rows, last] = await db.run((d1) => d1.batch([page.bind(d1, bound), end.bind(d1, bound)]));
  return pageOf(page.rows(rows), perPage, end.rows(last)[0] ?? null);
}

/** @param rows one more than the page has, if more follow */
function pageOf<Row>(rows: Row[], perPage: number, last: Row | null): ScannedPage<Row> {
  const items = rows.slice(0, perPage);
  return { items, last: rows.length > perPage ? (items.at(-1) ?? null) : last };
}
