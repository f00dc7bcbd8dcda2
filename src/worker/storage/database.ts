import { is, Param, Placeholder } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { QueryBuilder } from "drizzle-orm/sqlite-core";
import { NEAR_DEADLINE_MILLISECONDS } from "../../shared/limits.ts";
import * as schema from "../../shared/schema.ts";
import type { Orm } from "../../shared/storage/d1.ts";
import { log } from "../log.ts";
import { retryPlatform, withDeadline } from "../platform.ts";

export type { Orm };

/**
 * One home's D1, for one request, one batch of messages or one sweep. Counts round trips and retries transient failures, so
 * every write must be repeatable: it finds its work already done, or does all of it in one transaction.
 *
 * All calls go to the primary, except `nearRows`. Those of the badge calls go through sessions (D1: Sessions API), whose
 * bookmarks let the device's next call be served by a copy (contract section 16).
 */
export class Database {
  readonly orm: Orm;
  readonly d1: D1Database;
  #roundTrips = 0;
  #nearTrips = 0;
  #bookmark: string | null = null;

  constructor(d1: D1Database) {
    this.d1 = d1;
    this.orm = ormOf(d1);
  }

  /** Calls made to D1 so far, retries included. */
  get roundTrips(): number {
    return this.#roundTrips;
  }

  /** Those of them that did not go to a copy near the caller. A copy that failed counts: nobody knows how far away it is. */
  get farTrips(): number {
    return this.#roundTrips - this.#nearTrips;
  }

  /** D1's state that the last session saw or made, as D1 names it; null: there was no session. */
  get bookmark(): string | null {
    return this.#bookmark;
  }

  /** @param bookmark of a session that the allocator had; undefined: the object is of an earlier release, which reports none */
  noteBookmark(bookmark: string | null | undefined): void {
    this.#bookmark = bookmark ?? null;
  }

  /** @returns the rows of a query, each a tuple of its columns; throws as `run` does */
  rows(query: Query, values: Readonly<Record<string, unknown>>): Promise<unknown[]> {
    return this.run((_, d1) => bound(d1, query, values).raw());
  }

  /** The same, in a session. */
  primaryRows(query: Query, values: Readonly<Record<string, unknown>>): Promise<unknown[][]> {
    return this.atPrimary((session) => bound(session, query, values).raw());
  }

  /**
   * Asks the nearest copy of D1, which may be the primary; if that fails or takes a second, the primary itself.
   *
   * @param query its columns have different names, none of them a number
   * @param bookmark a copy that is older waits until it is as new; null: any copy will do
   * @returns the rows, each a tuple of its columns, and whether they are the primary's
   * @throws Unavailable when the primary fails too
   */
  async nearRows(
    query: Query,
    values: Readonly<Record<string, unknown>>,
    bookmark: string | null,
  ): Promise<{ rows: unknown[][]; isPrimary: boolean }> {
    const session = this.d1.withSession(bookmark ?? "first-unconstrained");
    this.#roundTrips++;
    try {
      const ask = () => bound(session, query, values).all();
      // Without retries: asking the primary is one.
      const { results, meta } = await withDeadline("D1", NEAR_DEADLINE_MILLISECONDS, ask);
      // D1 reports this with every response of a session (D1: Sessions API); only the local D1, which has no copies,
      // does not.
      const isPrimary = meta.served_by_primary !== false;
      if (!isPrimary) this.#nearTrips++;
      this.#bookmark = session.getBookmark();
      return { rows: results.map((row) => Object.values(row)), isPrimary };
    } catch (error) {
      log("warn", { event: "near-read-failed", error });
      return { rows: await this.primaryRows(query, values), isPrimary: true };
    }
  }

  /**
   * Runs one query or batch at the primary, in a session of its own: the second read of a session may go to a copy.
   *
   * @throws Unavailable when D1 fails or does not respond in time
   */
  async atPrimary<T>(query: (session: D1DatabaseSession) => Promise<T>): Promise<T> {
    let session: D1DatabaseSession | undefined;
    const result = await retryPlatform("D1", () => {
      this.#roundTrips++;
      session = this.d1.withSession("first-primary");
      return query(session);
    });
    // Here, because a try that finishes after the deadline never gets this far.
    this.#bookmark = session?.getBookmark() ?? null;
    return result;
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

const bound = (d1: Pick<D1Database, "prepare">, query: Query, values: Readonly<Record<string, unknown>>) =>
  d1.prepare(query.sql).bind(...query.bind(values));

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
