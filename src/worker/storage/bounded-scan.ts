import { and, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { MAX_ROWS_PER_ITEM, MAX_ROWS_PER_PAGE } from "../../shared/limits.ts";
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

/** A page of a list, as the rows of a table that it looks at and those that it lists. */
interface Scan<Selected extends Fields> {
  /** With INDEXED BY where SQLite would otherwise read the whole table in the wanted order, as those WITHOUT ROWID. */
  table: SQLWrapper;
  /** What of each row is looked at, if not all its columns. */
  selected?: SQL;
  /**
   * Conditions, each of which an index finds without reading other rows. Together they have everything that is listed. They
   * include where the page starts.
   */
  ranges: readonly (SQL | undefined)[];
  /** By which the rows of a range come from its index: names without a table. */
  order: SQL;
  /** Conditions on `scanned` for a row to be listed; none: all are. */
  conditions?: readonly (SQL | undefined)[];
  /** What is listed of each row of `scanned`. */
  fields: Selected;
}

interface Limits {
  /** One more than the page has. */
  limit: number;
  /** How many rows it looks at. */
  scanned: number;
}

/** The statements of a page. */
export interface ScanStatements<Values, Row> {
  page: Statement<Values & Limits, Row>;
  /** The last row that a page with conditions looks at; null: every row is listed. */
  end: Statement<Values & Limits, Row> | null;
}

/** A page of rows; `last` is the row after which the next page starts, whether or not it is listed; null: nothing follows. */
export interface ScannedPage<Row> {
  items: Row[];
  last: Row | null;
}

/** How many rows a page may look at: half of what it may read (contract section 24), because they are read twice. */
export const scanLimit = (perPage: number): number => (MAX_ROWS_PER_ITEM * perPage + MAX_ROWS_PER_PAGE) / 2;

/** What a table is called in `fields` and `conditions`, with `alias` of Drizzle's. */
export const SCANNED = "scanned";

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
  // Rows leave the inner statement in its order. To order them again would read all of them before the first is listed.
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
 * @param scanned for a page with conditions: it ends early when it has looked at so many rows
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
  // In one transaction: between two, rows would come and go, and the next page begin too late or too early.
  const [rows, last] = await db.run((d1) => d1.batch([page.bind(d1, bound), end.bind(d1, bound)]));
  return pageOf(page.rows(rows), perPage, end.rows(last)[0] ?? null);
}

/** @param rows one more than the page has, if more follow */
function pageOf<Row>(rows: Row[], perPage: number, last: Row | null): ScannedPage<Row> {
  const items = rows.slice(0, perPage);
  return { items, last: rows.length > perPage ? (items.at(-1) ?? null) : last };
}
