import { and, asc, eq, getTableColumns, lte, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import type { ApplicationId } from "../../../shared/identifiers.ts";
import * as schema from "../../../shared/schema.ts";
import { orm, type Statement, statement } from "../../storage/statement.ts";
import type { Counters } from "../counters.ts";
import type { RowTable } from "../log-entry.ts";

/** The rows of an application in D1, page by page, by indexes that have no other application's rows in between. */

/** A key in the order of a table's pages. */
export type PageKey = readonly [string | number, string | number];

interface PageValues {
  applicationId: ApplicationId;
  /** The ends of the head's range segments. */
  first: number;
  last: number;
  after1: string | number;
  after2: string | number;
  limit: number;
}

type Row = Record<string, unknown>;

interface PagedTable {
  /** Below every key. */
  start: PageKey;
  select: Statement<PageValues, Row>;
  keyOf(row: Row): PageKey;
}

const p = {
  applicationId: sql.placeholder("applicationId"),
  first: sql.placeholder("first"),
  last: sql.placeholder("last"),
  after1: sql.placeholder("after1"),
  after2: sql.placeholder("after2"),
  limit: sql.placeholder("limit"),
};

const rangeEnd = (end: SQLiteColumn): SQL =>
  sql`(SELECT ${end} FROM ${schema.application} WHERE ${schema.application.id} = ${p.applicationId})`;

/** The numbers that the application can have: those of the head's range segments, and those of its range. */
const numbers = {
  first: sql`min(${p.first}, coalesce(${rangeEnd(schema.application.firstNumber)}, ${p.first}))`,
  last: sql`max(${p.last}, coalesce(${rangeEnd(schema.application.lastNumber)}, ${p.last}))`,
};

/** By number: the primary key, among the numbers that the application can have. */
function byNumber(table: typeof schema.badge | typeof schema.freedNumber): PagedTable {
  const own = and(
    // One bound: SQLite would begin at the first of two, among other applications' rows.
    sql`${table.number} > max(${p.after1}, ${numbers.first} - 1)`,
    lte(table.number, numbers.last),
    sql`+${table.applicationId} = ${p.applicationId}`,
  );
  const select = orm.select().from(table).where(own).orderBy(asc(table.number)).limit(p.limit);
  return { start: [-1, 0], select: statement(() => select), keyOf: ({ number }) => [Number(number), 0] };
}

/** By two columns of an index that begins with the application. */
function byIndex(
  table: typeof schema.invitation | typeof schema.blockedUser,
  [one, other]: readonly [SQLiteColumn | SQL, SQLiteColumn | SQL],
  /** Of the first column; the other is `rowKey`. */
  name: keyof typeof schema.invitation.$inferSelect | keyof typeof schema.blockedUser.$inferSelect,
  start: PageKey,
): PagedTable {
  const own = and(eq(table.applicationId, p.applicationId), sql`(${one}, ${other}) > (${p.after1}, ${p.after2})`);
  const fields = { ...getTableColumns(table), rowKey: sql<string | number>`${other}`.as("row_key") };
  const select = orm.select(fields).from(table).where(own).orderBy(one, other).limit(p.limit);
  return {
    start,
    select: statement(() => select),
    keyOf: (row) => [partOf(row[name]), partOf(row.rowKey)],
  };
}

const partOf = (value: unknown): string | number => (typeof value === "number" ? value : String(value));

export const PAGED_TABLES = {
  badge: byNumber(schema.badge),
  invitation: byIndex(
    schema.invitation,
    [schema.invitation.createdAt, sql`${schema.invitation}.rowid`],
    "createdAt",
    [-1, -1],
  ),
  blockedUser: byIndex(schema.blockedUser, [schema.blockedUser.userId, sql`''`], "userId", ["", ""]),
  freedNumber: byNumber(schema.freedNumber),
} satisfies Record<RowTable, PagedTable>;

export const TABLE_NAMES = ["badge", "invitation", "blockedUser", "freedNumber"] as const satisfies RowTable[];

/** The next rows of a table after a key. */
export function pageStatement(
  session: D1DatabaseSession,
  table: RowTable,
  {
    applicationId,
    counters,
    after,
    limit,
  }: { applicationId: ApplicationId; counters: Counters; after: PageKey; limit: number },
): D1PreparedStatement {
  const [after1, after2] = after;
  return PAGED_TABLES[table].select.bind(session, { applicationId, ...extent(counters), after1, after2, limit });
}

/** The rows of a page without the application, and the key after which the next page starts; null: there is none. */
export function readPage(
  table: RowTable,
  result: D1Result | undefined,
  limit: number,
): { rows: Row[]; next: PageKey | null } {
  const { select, keyOf } = PAGED_TABLES[table];
  const rows = select.rows(result);
  const last = rows.at(-1);
  const next = last && rows.length >= limit ? keyOf(last) : null;
  return { rows: rows.map(({ applicationId: _, rowKey: __, ...row }) => row), next };
}

/** The numbers between the ends of all range segments. */
const extent = ({ rangeSegments }: Counters): { first: number; last: number } => ({
  first: Math.min(...rangeSegments.map(({ first }) => first), Number.MAX_SAFE_INTEGER),
  last: Math.max(...rangeSegments.map(({ first, size }) => first + size - 1), 0),
});
