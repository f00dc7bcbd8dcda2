import { setTimeout as wait } from "node:timers/promises";
import type { D1Database } from "@cloudflare/workers-types";
import { getTableColumns, is, SQL, sql } from "drizzle-orm";
import { type DrizzleD1Database, drizzle } from "drizzle-orm/d1";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { isRetryable } from "../../shared/retryable.ts";
import { UserError } from "../command-line/errors.ts";

/** Builds statements from src/shared/schema.ts. */
export type Orm = DrizzleD1Database;

/** A home's D1 database. */
export class Database {
  readonly #d1: D1Database;
  readonly #orm: Orm;

  constructor(d1: D1Database) {
    this.#d1 = d1;
    this.#orm = drizzle(d1);
  }

  /** Runs one step, and may repeat it, so a step is a read, one idempotent statement, or one batch of those. */
  run<T>(step: (orm: Orm, d1: D1Database) => Promise<T>): Promise<T> {
    return retryDatabase(() => step(this.#orm, this.#d1));
  }

  /** D1's time, in milliseconds: this computer's clock may be wrong by hours. */
  async readClock(): Promise<number> {
    const { now } = await this.run((orm) =>
      orm.get<{ now: number }>(sql`SELECT cast(unixepoch('subsec') * 1000 AS INTEGER) AS now`),
    );
    return now;
  }
}

const TRIES = 12;
const FIRST_WAIT_MILLISECONDS = 40;
const LONGEST_WAIT_MILLISECONDS = 1000;

/** Repeats a step after retryable errors, with full jitter, for about five seconds. */
export async function retryDatabase<T>(step: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await step();
    } catch (error) {
      // An inner step has used up its own tries.
      if (error instanceof UserError || !isRetryable(error)) throw error;
      if (attempt === TRIES) throw new UserError("The database is busy: try again in a moment.", { cause: error });
      const longest = Math.min(LONGEST_WAIT_MILLISECONDS, FIRST_WAIT_MILLISECONDS * 2 ** attempt);
      await wait(Math.random() * longest);
    }
  }
}

/** A new row, some of whose values may be computed by D1. */
export type NewRow<Table extends SQLiteTable> = {
  [Name in keyof Table["$inferInsert"]]: Table["$inferInsert"][Name] | SQL;
};

/**
 * Inserts a row if a condition holds. Columns that the row does not name get the defaults of src/shared/schema.ts.
 *
 * @param source the end of the query that selects the values: from `FROM` or `WHERE` on
 */
export function insertWhere<Table extends SQLiteTable>(orm: Orm, table: Table, row: NewRow<Table>, source: SQL) {
  const given = new Map(Object.entries(row));
  const values = Object.entries(getTableColumns(table)).map(([name, column]) => {
    // An explicit null stays null, even in a column with a default.
    const value = given.get(name) === undefined ? (column.default ?? null) : given.get(name);
    return is(value, SQL) ? value : sql.param(value, column);
  });
  return orm.insert(table).select(sql`SELECT ${sql.join(values, sql`, `)} ${source}`);
}
