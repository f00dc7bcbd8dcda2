import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from "node:sqlite";

export type Row = Record<string, SQLOutputValue>;
/** D1 takes truth values, too. */
export type Value = SQLInputValue | boolean;

export const insertInto = (table: string, row: Readonly<Record<string, Value>>) => ({
  sql: `INSERT INTO ${table} (${Object.keys(row)}) VALUES (${Object.keys(row).map(() => "?")})`,
  parameters: Object.values(row),
});

/** A real SQLite in memory, behind the two shapes that Cloudflare gives it. Statements are parsed once. */
export class Sqlite {
  readonly db = new DatabaseSync(":memory:");
  readonly #prepared = { rows: new Map<string, Prepared>(), arrays: new Map<string, Prepared>() };

  constructor(script = "") {
    // Nothing here survives a power cut anyway; the journal stays, because transactions roll back.
    this.db.exec(`PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; ${script}`);
  }

  insert(table: string, row: Row): void {
    const { sql, parameters } = insertInto(table, row);
    this.run(sql, parameters);
  }

  /** One statement. @returns `changes`: rows that it changed; 0 when it gives rows */
  run(sql: string, parameters: readonly Value[] = []): { rows: Row[]; changes: number } {
    const { statement, columns } = this.#prepare(sql, "rows");
    const values = parameters.map(toSqlite);
    if (columns.length === 0) return { rows: [], changes: Number(statement.run(...values).changes) };
    return { rows: statement.all(...values), changes: 0 };
  }

  /** One statement, whose rows come as arrays: two columns may have one name. */
  raw(sql: string, parameters: readonly Value[] = []): { columns: string[]; rows: SQLOutputValue[][] } {
    const { statement, columns } = this.#prepare(sql, "arrays");
    const rows: unknown[] = statement.all(...parameters.map(toSqlite));
    return { columns, rows: rows.filter((row) => Array.isArray(row)) };
  }

  /** All of some work or nothing. @returns its result, and what it changed, in SQLite's own format */
  transaction<T>(work: () => T): { result: T; changeset: Uint8Array } {
    const session = this.db.createSession();
    this.db.exec("BEGIN");
    try {
      const result = work();
      this.db.exec("COMMIT");
      return { result, changeset: session.changeset() };
    } catch (error) {
      this.db.exec("ROLLBACK");
      throw error;
    } finally {
      session.close();
    }
  }

  /** Empties every table: the next seed finds the database as if it were new. */
  clear(): void {
    // Later tables refer to earlier ones. Foreign keys stay on: to switch them would make every statement be planned anew.
    const { rows } = this.run("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid DESC");
    for (const { name } of rows) this.run(`DELETE FROM "${name}"`);
  }

  #prepare(sql: string, shape: "rows" | "arrays"): Prepared {
    const known = this.#prepared[shape].get(sql);
    if (known) return known;
    const statement = this.db.prepare(sql);
    const columns = statement.columns().map(({ name }) => name);
    if (shape === "arrays") statement.setReturnArrays(true);
    else if (new Set(columns).size < columns.length) throw new Error(`repeated column names: ${sql}`);
    const prepared = { statement, columns };
    this.#prepared[shape].set(sql, prepared);
    return prepared;
  }
}

interface Prepared {
  statement: StatementSync;
  columns: string[];
}

const toSqlite = (value: Value): SQLInputValue => (typeof value === "boolean" ? Number(value) : value);
