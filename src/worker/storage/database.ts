import { is, Param, Placeholder } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { QueryBuilder } from "drizzle-orm/sqlite-core";
import * as schema from "../../shared/schema.ts";
import type { Orm } from "../../shared/storage/d1.ts";
import { retryPlatform } from "../platform.ts";

export type { Orm };

/**
 * D1 for one request, one message or one sweep. Counts round trips and retries transient failures, so every write must be
 * repeatable: it finds its work already done, or does all of it in one transaction.
 */
export class Database {
  readonly orm: Orm;
  readonly d1: D1Database;
  #roundTrips = 0;

  constructor(d1: D1Database) {
    this.d1 = d1;
    this.orm = ormOf(d1);
  }

  /** Calls made to D1 so far, retries included. */
  get roundTrips(): number {
    return this.#roundTrips;
  }

  /** @returns the rows of a query, each a tuple of its columns; throws as `run` does */
  rows(query: Query, values: Readonly<Record<string, unknown>>): Promise<unknown[]> {
    return this.run((_, d1) =>
      d1
        .prepare(query.sql)
        .bind(...query.bind(values))
        .raw(),
    );
  }

  /**
   * @param deadlineMilliseconds for the round trip, retries included; if not given, that of every platform call
   * @throws Unavailable when D1 fails or does not respond in time
   */
  run<T>(query: (orm: Orm, d1: D1Database) => Promise<T>, deadlineMilliseconds?: number): Promise<T> {
    const call = () => {
      this.#roundTrips++;
      return query(this.orm, this.d1);
    };
    return retryPlatform("D1", call, deadlineMilliseconds);
  }
}

const orms = new WeakMap<D1Database, Orm>();

/** One Drizzle instance per binding, so that its statements are built once per isolate. */
function ormOf(d1: D1Database): Orm {
  const known = orms.get(d1);
  if (known) return known;
  const orm = drizzle(d1, { schema });
  orms.set(d1, orm);
  return orm;
}

/**
 * A statement that is built once per binding and then only bound: building it costs more than the rest of a request.
 */
export function prepared<Statement>(build: (orm: Orm) => Statement): (orm: Orm) => Statement {
  const statements = new WeakMap<Orm, Statement>();
  return (orm) => {
    const known = statements.get(orm);
    if (known !== undefined) return known;
    const statement = build(orm);
    statements.set(orm, statement);
    return statement;
  };
}

/** A query in D1's terms: its text, and the values to bind, in order. */
export interface Query {
  sql: string;
  bind(values: Readonly<Record<string, unknown>>): unknown[];
}

/**
 * A query that Drizzle builds and D1 runs: its text is generated once per isolate, and its rows are returned as D1 sends
 * them. For the queries of logins, signatures and pages, where Drizzle would take more time than the rest of the Worker's
 * code.
 */
export function queryOf(
  build: (builder: QueryBuilder) => { toSQL(): { sql: string; params: unknown[] } },
): () => Query {
  let known: Query | undefined;
  return () => {
    known ??= toQuery(build(new QueryBuilder()).toSQL());
    return known;
  };
}

/** @param params with placeholders, as Drizzle leaves them in a query's text */
export function toQuery({ sql, params }: { sql: string; params: unknown[] }): Query {
  const parts = params.map((param) => {
    const value = is(param, Param) ? param.value : param;
    return is(value, Placeholder) ? { name: value.name } : { value };
  });
  return { sql, bind: (values) => parts.map((part) => ("name" in part ? values[part.name] : part.value)) };
}
