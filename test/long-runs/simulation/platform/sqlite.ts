import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from "node:sqlite";

export type Row = Record<string, SQLOutputValue>;

/** A real SQLite in memory, behind the two shapes that Cloudflare gives it. Statements are parsed once. */
export class Sqlite {
  readonly #db = new DatabaseSync(":memory:");
  readonly #prepared = new Map<string, { statement: StatementSync; columns: string[] }>();

  constructor(script = "") {
    // Nothing here survives a power cut anyway; the journal stays, because transactions roll back.
    this.#db.exec(`PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; ${script}`);
  }

  /** Several statements without parameters. */
  exec(script: string): void {
    this.#db.exec(script);
  }

  /** One statement. @returns `changes`: rows that it changed; 0 when it gives rows */
  run(sql: string, parameters: readonly unknown[] = []): { rows: Row[]; changes: number } {
    const { statement, columns } = this.#prepare(sql);
    const values = parameters.map(toInput);
    if (columns.length === 0) return { rows: [], changes: Number(statement.run(...values).changes) };
    return { rows: statement.all(...values), changes: 0 };
  }

  /** All of it or nothing. */
  transaction<T>(work: () => T): T {
    this.run("BEGIN");
    try {
      const result = work();
      this.run("COMMIT");
      return result;
    } catch (error) {
      this.run("ROLLBACK");
      throw error;
    }
  }

  /** What some work changes, in SQLite's own format. */
  record(work: () => void): Uint8Array {
    const session = this.#db.createSession();
    try {
      work();
      return session.changeset();
    } finally {
      session.close();
    }
  }

  /** Changes the same. @throws Error when it is not on the same rows */
  apply(changeset: Uint8Array): void {
    if (!this.#db.applyChangeset(changeset)) throw new Error("a copy is not what it was made from");
  }

  /** A function that SQL can call, or calls in place of its own. */
  define(name: string, call: (...values: SQLOutputValue[]) => SQLInputValue): void {
    this.#db.function(name, { varargs: true }, call);
  }

  columnsOf(sql: string): string[] {
    return this.#prepare(sql).columns;
  }

  /** Empties every table: the next seed finds the database as if it were new. */
  clear(): void {
    // Later tables refer to earlier ones. Foreign keys stay on: to switch them would make every statement be planned anew.
    const { rows } = this.run("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid DESC");
    this.#db.exec(rows.map(({ name }) => `DELETE FROM "${name}";`).join(" "));
  }

  #prepare(sql: string) {
    const known = this.#prepared.get(sql);
    if (known) return known;
    const statement = this.#db.prepare(sql);
    const prepared = { statement, columns: statement.columns().map(({ name }) => name) };
    // A row is an object here, so the second of two equal names would be lost.
    if (new Set(prepared.columns).size < prepared.columns.length) throw new Error(`repeated column names: ${sql}`);
    this.#prepared.set(sql, prepared);
    return prepared;
  }
}

/** What D1 takes: text, numbers, truth values, bytes, null. */
function toInput(value: unknown): SQLInputValue {
  if (value === null || typeof value === "string" || typeof value === "number" || value instanceof Uint8Array) {
    return value;
  }
  if (typeof value === "boolean") return value ? 1 : 0;
  throw new TypeError(`D1_TYPE_ERROR: Type '${typeof value}' not supported for value '${String(value)}'`);
}
