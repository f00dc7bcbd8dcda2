import { type Column, is, type Placeholder, SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { SelectResultFields } from "drizzle-orm/query-builders/select.types";
import { drizzle } from "drizzle-orm/sqlite-proxy";
import { LruCache } from "../lru-cache.ts";
import { type CompiledQuery, compileQuery, rowOfArray, rowOfObject } from "./compiled-query.ts";

/**
 * All D1 queries are built here, once, with Drizzle and placeholders. Calls only bind values. Building a query for each
 * call would cost 50 to 100 µs, more than the Worker's other work for a signature.
 */

/**
 * Builds inserts, updates, deletes and selects from src/shared/schema.ts. It runs none of them: a statement is bound to
 * its call's session.
 */
export const orm = drizzle(() => Promise.reject(new Error("a statement is bound to a session, not run by Drizzle")));

/** One placeholder for each value that a call binds. */
export type Placeholders<Values> = { readonly [Name in keyof Values & string]: Placeholder<Name, Values[Name]> };

/** Columns and expressions by the names of a row's fields. An `sql` text needs `mapWith` if its type differs from D1's value. */
export type Fields = Record<string, Column | SQL | SQL.Aliased>;

/** A Drizzle select, or, where Drizzle cannot express the query, an SQL text with its fields. */
type Query = Select | Returning<Fields> | SQLWrapper;

interface Select extends SQLWrapper {
  _: { result: unknown[]; selectedFields: object };
}

/** An SQL text and the fields of its rows. */
export interface Returning<Selected extends Fields> {
  fields: Selected;
  query: SQLWrapper;
}

/** The row of a query; a query without fields has no row. */
export type RowOf<Of> =
  Of extends Returning<infer Selected>
    ? SelectResultFields<Selected>
    : Of extends { _: { result: (infer Row)[] } }
      ? Row
      : never;

/** The row of a statement. */
export type RowOfStatement<Of> = Of extends Statement<never, infer Row> ? Row : never;

/** D1 itself or a session, to which statements are bound. */
export type Session = Pick<D1DatabaseSession, "prepare">;

/** A query that is bound to the values of a call. */
export interface Statement<Values, Row> {
  /** The prepared statement, built at the first use. */
  readonly sql: string;
  /** Binds it, to be run alone or in a batch. Drizzle's own errors contain the values; D1's do not. */
  bind(session: Session, values: Values): D1PreparedStatement;
  /** Rows of a batch or of `all()`, which come as objects by column name. */
  rows(result: { results: unknown[] } | undefined): Row[];
  /** Runs it alone, as a read: the rows come without column names, which costs least. One round trip. */
  all(session: Session, values: Values): Promise<Row[]>;
}

/**
 * A query of one shape, built at its first use.
 *
 * A value that is not a placeholder is a constant in the text, so that SQLite can choose a partial index. A placeholder
 * is bound once, however often it is used (D1: at most 100 parameters a statement).
 *
 * @param build from the placeholders, whose names and types are those of `Values`
 * @throws Error at the first use, if two fields have the same column name: a batch would give one value for both
 */
export function statement<Values extends object, Of extends Query>(
  build: (placeholders: Placeholders<Values>) => Of,
): Statement<Values, RowOf<Of>> {
  let compiled: CompiledQuery | undefined;
  const use = () => {
    compiled ??= compile(build(placeholdersOf<Values>()));
    return compiled;
  };
  const bind = (session: Session, values: Values) => {
    const { text, parameters } = use();
    return session.prepare(text).bind(...parameters.map(({ name, encode }) => encode(Reflect.get(values, name))));
  };
  return {
    get sql() {
      return use().text;
    },
    bind,
    rows: (result) => typed<RowOf<Of>>((result?.results ?? []).map((row) => rowOfObject(use().fields, row))),
    async all(session, values) {
      const { fields } = use();
      const rows = await bind(session, values).raw();
      return typed<RowOf<Of>>(rows.map((row) => rowOfArray(fields, row)));
    },
  };
}

/** Rows are not checked: they have the types of their query's fields, because D1's tables are those of the schema. */
const typed = <Row>(rows: object[]): Row[] => rows as Row[];

/**
 * An SQL text with columns of the schema, for features that Drizzle's builder lacks (INDEXED BY, json_each, RETURNING
 * of a selection). It is also for fields with a subquery that names the outer table: Drizzle's select from a single table
 * leaves the table's name out there.
 *
 * @param write gets the fields as the list after SELECT or RETURNING, each under its own name
 */
export function query<Selected extends Fields>(
  fields: Selected,
  write: (columns: SQL) => SQLWrapper,
): Returning<Selected> {
  const named = Object.entries(fields).map(([name, field]) => {
    return sql`${is(field, SQL.Aliased) ? field.sql : field} AS ${sql.identifier(name)}`;
  });
  return { fields, query: write(sql.join(named, sql`, `)) };
}

/**
 * Statements of one query by shape: the set filters decide the shape, and unset filters do not appear in the text.
 *
 * @param build called for each new shape; shapes with equal values are the same
 */
export function byShape<Shape extends Readonly<Record<string, string | number | boolean | null>>, Built>(
  build: (shape: Shape) => Built,
): (shape: Shape) => Built {
  const known = new LruCache<{ built: Built }>(MAX_SHAPES);
  return (shape) => {
    const key = JSON.stringify(Object.values(shape));
    const found = known.get(key);
    if (found) return found.built;
    const built = build(shape);
    known.set(key, { built });
    return built;
  };
}

/** More shapes than any list has with its filters; the letters of a search add shapes (text-search.ts). */
const MAX_SHAPES = 500;

/** A column's name alone, as SQLite wants it where a column is set or inserted. */
export const columnName = ({ name }: { name: string }): SQL => sql.identifier(name).getSQL();

/** The members of a list that is bound as one value. */
export const eachOf = <Name extends string>(list: Placeholder<Name, readonly unknown[]>): SQL =>
  sql`json_each(${sql.param(list, { mapToDriverValue: JSON.stringify })})`;

/** Placeholders are made on access; equal names are the same parameter of a statement. */
export const placeholdersOf = <Values>(): Placeholders<Values> =>
  new Proxy(Object.create(null), { get: (_, name) => sql.placeholder(String(name)) });

function compile(built: Query): CompiledQuery {
  if ("fields" in built) return compileQuery(built.query, built.fields, true);
  return compileQuery(built, isSelect(built) ? { ...built._.selectedFields } : {}, false);
}

/** Other queries have `_` in their types only. */
const isSelect = (built: Query): built is Select => "_" in built;
