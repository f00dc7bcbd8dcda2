import { readFileSync } from "node:fs";
import type { SQLOutputValue } from "node:sqlite";
import { Dice } from "../../dice.ts";
import { migrationFiles } from "../../migrations.ts";
import { standIn } from "../../stand-in.ts";
import { requireProcess } from "./process.ts";
import { type Row, Sqlite } from "./sqlite.ts";

/** A row that a transaction changed; null where there was none before, or is none after. */
export interface Change {
  table: string;
  before: Row | null;
  after: Row | null;
}

/** One database for all seeds, made from the migrations; emptied for each. */
const sqlite = new Sqlite(
  migrationFiles()
    .map((file) => readFileSync(file, "utf8"))
    .join("\n"),
);

const RESTORED_TABLES = ["badge", "invitation", "webhook_event", "blocked_user", "clock", "application"] as const;

sqlite.exec("ATTACH ':memory:' AS copy");
for (const table of RESTORED_TABLES) sqlite.exec(`CREATE TABLE copy.${table} AS SELECT * FROM main.${table}`);
for (const table of ["badge", "invitation", "webhook_event", "blocked_user"]) watch(table);

let changes: Change[] = [];
sqlite.define("changed", (table, before, after) => {
  changes.push({ table: String(table), before: readRow(before), after: readRow(after) });
  return null;
});

let dice = new Dice(0);
sqlite.define("randomblob", (bytes) => Uint8Array.from({ length: Number(bytes) }, () => dice.below(256)));

/** SQLite itself tells of every changed row, whoever changed it. */
function watch(table: string): void {
  const columns = sqlite.columnsOf(`SELECT * FROM ${table}`);
  const json = (row: string) => `json_object(${columns.map((column) => `'${column}', ${row}.${column}`).join(", ")})`;
  for (const [event, before, after] of [
    ["INSERT", "NULL", json("NEW")],
    ["UPDATE", json("OLD"), json("NEW")],
    ["DELETE", json("OLD"), "NULL"],
  ]) {
    sqlite.exec(`CREATE TEMP TRIGGER watch_${table}_${event} AFTER ${event} ON ${table}
      BEGIN SELECT changed('${table}', ${before}, ${after}); END`);
  }
}

function readRow(json: SQLOutputValue | undefined): Row | null {
  return typeof json === "string" ? JSON.parse(json) : null;
}

export interface Statement {
  sql: string;
  parameters: readonly unknown[];
}

/** D1's side: one transaction at a time, in the order in which they arrive. */
export class D1Server {
  readonly #watcher: (changes: readonly Change[], lateMilliseconds: number) => void;

  /** @param watcher is told of every transaction that changed something, and how long after it was sent it did */
  constructor(ownDice: Dice, watcher: (changes: readonly Change[], lateMilliseconds: number) => void) {
    dice = ownDice;
    this.#watcher = watcher;
    sqlite.clear();
    changes = [];
  }

  /** One transaction. @throws Error as D1 words it; then nothing was changed */
  execute(statements: readonly Statement[], lateMilliseconds = 0): D1Result[] {
    try {
      const results = sqlite.transaction(() =>
        statements.map(({ sql, parameters }) => toResult(sqlite.run(sql, parameters))),
      );
      if (changes.length > 0) this.#watcher(changes, lateMilliseconds);
      return results;
    } catch (error) {
      throw new Error(`D1_ERROR: ${error instanceof Error ? error.message : "unknown"}`, { cause: error });
    } finally {
      changes = [];
    }
  }

  /** For whoever looks on: reads without being part of the service. */
  look(sql: string, ...parameters: unknown[]): Row[] {
    return sqlite.run(sql, parameters).rows;
  }

  /** Keeps all that the service writes, as D1 would for a restoration. */
  copy(): void {
    for (const table of RESTORED_TABLES) {
      sqlite.exec(`DELETE FROM copy.${table}; INSERT INTO copy.${table} SELECT * FROM main.${table}`);
    }
  }

  /** Time Travel. The service's own rows go back; what only the administrator writes does not matter to it, and stays. */
  restore(): void {
    sqlite.transaction(() => {
      for (const table of RESTORED_TABLES.filter((name) => name !== "application")) {
        sqlite.exec(`DELETE FROM main.${table}; INSERT INTO main.${table} SELECT * FROM copy.${table}`);
      }
      sqlite.exec(`UPDATE main.application
        SET feed_epoch = (SELECT feed_epoch FROM copy.application AS copied WHERE copied.id = application.id)`);
    });
    changes = [];
  }
}

function toResult({ rows, changes: changed }: { rows: Row[]; changes: number }): D1Result {
  const zeroes = { duration: 0, size_after: 0, rows_read: 0, rows_written: 0, last_row_id: 0 };
  return { success: true, results: rows, meta: { ...zeroes, changed_db: changed > 0, changes: changed } };
}

const unbound = new WeakMap<D1PreparedStatement, Statement>();

function makeStatement(statement: Statement): D1PreparedStatement {
  const execute = async () => {
    const [result] = await send([statement]);
    if (!result) throw new Error("D1 gives one result for each statement");
    return result;
  };
  const made = standIn<D1PreparedStatement>("a D1 statement", {
    bind: (...parameters: unknown[]) => makeStatement({ ...statement, parameters }),
    all: execute,
    run: execute,
    raw: async () => (await execute()).results.map((row) => Object.values(row ?? {})),
  });
  unbound.set(made, statement);
  return made;
}

/** D1 as the service sees it, in whatever process the service runs. */
export const d1Binding = standIn<D1Database>("D1", {
  prepare: (sql: string) => makeStatement({ sql, parameters: [] }),
  batch: (batch: D1PreparedStatement[]) => {
    const statements = batch.map((made) => unbound.get(made)).filter((statement) => statement !== undefined);
    if (statements.length === 0) throw new Error("D1_ERROR: No SQL statements detected.");
    return send(statements);
  },
});

/** What D1 says when a call fails; the last one must not be tried again at once. */
const ERRORS = [
  "Network connection lost.",
  "D1_ERROR: Network connection lost.",
  "D1 DB storage caused object to be reset.",
  "D1_ERROR: Cannot resolve D1 DB due to transient issue on remote node.",
  "D1_ERROR: D1 DB is overloaded. Requests queued for too long.",
] as const;

function send(statements: readonly Statement[]): Promise<D1Result[]> {
  const process = requireProcess();
  const { wire, d1, serviceDice, timeline } = process.world;
  const sentAt = timeline.now;
  return wire.call(process, {
    part: "d1",
    what: `D1 ${statements.map(({ sql }) => nameOf(sql)).join(", ")}`,
    effect: () => d1.execute(statements, timeline.now - sentAt),
    error: () => new Error(serviceDice.oneOf(ERRORS)),
  });
}

/** Verb and table, for the trace. */
function nameOf(sql: string): string {
  const [, verb = "?"] = /^\s*(\w+)/.exec(sql) ?? [];
  const [, table = "?"] = /(?:INTO|UPDATE|FROM)\s+"?(\w+)/i.exec(sql) ?? [];
  return `${verb.toLowerCase()} ${table}`;
}
