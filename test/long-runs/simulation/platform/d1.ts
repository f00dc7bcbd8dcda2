import type { SQLOutputValue } from "node:sqlite";
import { homeOf } from "../../../../src/shared/homes.ts";
import type { ApplicationId } from "../../../../src/shared/identifiers.ts";
import { Dice } from "../../dice.ts";
import { standIn } from "../../stand-in.ts";
import { Member } from "../member.ts";
import { HOMES } from "../plan.ts";
import type { World } from "../world.ts";
import { Copies, SCHEMA } from "./copies.ts";
import { requireProcess } from "./process.ts";
import { type Row, Sqlite } from "./sqlite.ts";

/** A row that a transaction changed; null where there was none before, or is none after. */
export interface Change {
  table: string;
  before: Row | null;
  after: Row | null;
}

const RESTORED_TABLES = ["badge", "invitation", "webhook_event", "blocked_user", "clock", "application"] as const;

/** Of the transaction that runs. */
let changes: Change[] = [];
let dice = new Dice(0);

/** A database of each home for all seeds, made from the migrations; emptied for each. */
const databases = HOMES.map(() => {
  const sqlite = new Sqlite(SCHEMA);
  sqlite.exec("ATTACH ':memory:' AS copy");
  for (const table of RESTORED_TABLES) sqlite.exec(`CREATE TABLE copy.${table} AS SELECT * FROM main.${table}`);
  for (const table of ["badge", "invitation", "webhook_event", "blocked_user", "application", "application_secret"]) {
    watch(sqlite, table);
  }
  sqlite.define("changed", (table, before, after) => {
    changes.push({ table: String(table), before: readRow(before), after: readRow(after) });
    return null;
  });
  sqlite.define("randomblob", (bytes) => Uint8Array.from({ length: Number(bytes) }, () => dice.below(256)));
  return sqlite;
});

/** SQLite itself tells of every changed row, whoever changed it. */
function watch(sqlite: Sqlite, table: string): void {
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

/** How often a read that a copy may respond to goes to one. */
const COPY_CHANCE = 0.8;

export interface Statement {
  sql: string;
  parameters: readonly unknown[];
}

/** Is told of every transaction that changed something, and how long after it was sent it did. */
type Watcher = (changes: readonly Change[], lateMilliseconds: number) => void;

/** The D1s of all homes. */
export class D1Homes {
  readonly #homes: ReadonlyMap<number, D1Server>;

  constructor(world: World, watcher: Watcher) {
    const servers = databases.map((sqlite, index) => new D1Server(world, index + 1, sqlite, watcher));
    this.#homes = new Map(servers.map((server, index) => [index + 1, server]));
  }

  at(home: number): D1Server {
    const server = this.#homes.get(home);
    if (server === undefined) throw new Error(`there is no home ${home}`);
    return server;
  }

  of(applicationId: ApplicationId): D1Server {
    return this.at(homeOf(applicationId));
  }

  /** For whoever looks on: the rows of every home. */
  look(sql: string, ...parameters: unknown[]): Row[] {
    return [...this.#homes.values()].flatMap((server) => server.look(sql, ...parameters));
  }
}

/** One D1's side: one transaction at a time, in the order in which they arrive; and its read copies. */
export class D1Server extends Member {
  readonly copies: Copies;
  readonly #sqlite: Sqlite;
  readonly #dice: Dice;
  readonly #watcher: Watcher;

  constructor(world: World, home: number, sqlite: Sqlite, watcher: Watcher) {
    super(world);
    this.copies = new Copies(world, home);
    this.#sqlite = sqlite;
    this.#dice = world.dice.of(`sessions of home ${home}`);
    dice = world.dice.of("d1");
    this.#watcher = watcher;
    sqlite.clear();
    changes = [];
  }

  /** One transaction. @throws Error as D1 words it; then nothing was changed */
  execute(statements: readonly Statement[], lateMilliseconds = 0): D1Result[] {
    try {
      const results: D1Result[] = [];
      const sqlite = this.#sqlite;
      const work = () => sqlite.transaction(() => results.push(...run(sqlite, statements, true)));
      if (statements.every(isRead)) work();
      else this.copies.add(sqlite.record(work));
      if (changes.length > 0) this.#watcher(changes, lateMilliseconds);
      return results;
    } catch (error) {
      throw new Error(`D1_ERROR: ${error instanceof Error ? error.message : "unknown"}`, { cause: error });
    } finally {
      changes = [];
    }
  }

  /**
   * The same within a session, whose bookmark says how new the copy must be at least that responds.
   *
   * @param bookmark a position; null: only the primary may respond
   */
  async executeNear(
    statements: readonly Statement[],
    bookmark: number | null,
    lateMilliseconds: number,
  ): Promise<{ results: D1Result[]; bookmark: number }> {
    if (bookmark !== null && statements.every(isRead) && this.#dice.chance(COPY_CHANCE)) {
      const copy = await this.copies.find(bookmark);
      return { results: run(copy.sqlite, statements, false), bookmark: copy.position };
    }
    return { results: this.execute(statements, lateMilliseconds), bookmark: this.copies.position };
  }

  /** For whoever looks on: reads without being part of the service. */
  look(sql: string, ...parameters: unknown[]): Row[] {
    return this.#sqlite.run(sql, parameters).rows;
  }

  /** Keeps all that the service writes, as D1 would for a restoration. */
  copy(): void {
    for (const table of RESTORED_TABLES) {
      this.#sqlite.exec(`DELETE FROM copy.${table}; INSERT INTO copy.${table} SELECT * FROM main.${table}`);
    }
  }

  /** Time Travel. The service's own rows go back; what only the administrator writes does not matter to it, and stays. */
  restore(): void {
    const sqlite = this.#sqlite;
    const changeset = sqlite.record(() => {
      for (const table of RESTORED_TABLES.filter((name) => name !== "application")) {
        sqlite.exec(`DELETE FROM main.${table}; INSERT INTO main.${table} SELECT * FROM copy.${table}`);
      }
      sqlite.exec(`UPDATE main.application
        SET feed_epoch = (SELECT feed_epoch FROM copy.application AS copied WHERE copied.id = application.id)`);
    });
    this.copies.add(changeset);
    this.copies.restored();
    changes = [];
  }
}

const isRead = ({ sql }: Statement): boolean => /^\s*SELECT/i.test(sql);

function run(database: Sqlite, statements: readonly Statement[], isPrimary: boolean): D1Result[] {
  const zeroes = { duration: 0, size_after: 0, rows_read: 0, rows_written: 0, last_row_id: 0 };
  return statements.map(({ sql, parameters }) => {
    const { rows, changes: changed } = database.run(sql, parameters);
    const meta = { ...zeroes, changed_db: changed > 0, changes: changed, served_by_primary: isPrimary };
    return { success: true, results: rows, meta };
  });
}

const unbound = new WeakMap<D1PreparedStatement, Statement>();

type Send = (statements: readonly Statement[]) => Promise<D1Result[]>;

function makeStatement(statement: Statement, send: Send): D1PreparedStatement {
  const execute = async () => {
    const [result] = await send([statement]);
    if (!result) throw new Error("D1 gives one result for each statement");
    return result;
  };
  const made = standIn<D1PreparedStatement>("a D1 statement", {
    bind: (...parameters: unknown[]) => makeStatement({ ...statement, parameters }, send),
    all: execute,
    run: execute,
    raw: async () => (await execute()).results.map((row) => Object.values(row ?? {})),
  });
  unbound.set(made, statement);
  return made;
}

const statementsBy = (send: Send) => ({
  prepare: (sql: string) => makeStatement({ sql, parameters: [] }, send),
  batch: (batch: D1PreparedStatement[]) => {
    const statements = batch.map((made) => unbound.get(made)).filter((statement) => statement !== undefined);
    if (statements.length === 0) throw new Error("D1_ERROR: No SQL statements detected.");
    return send(statements);
  },
});

/** A home's D1 as the service sees it, in whatever process the service runs: outside of sessions, the primary. */
export const d1Binding = (home: number): D1Database =>
  standIn<D1Database>("D1", {
    ...statementsBy(async (statements) => (await send(home, statements, null)).results),
    withSession: (first: string) => openSession(home, first === "first-primary" ? null : requirePosition(first)),
  });

/** Its first query goes to the primary if `bookmark` is null; each later one goes to what is as new as the one before it. */
function openSession(home: number, bookmark: number | null): D1DatabaseSession {
  let latest = bookmark;
  const statements = statementsBy(async (sent) => {
    const { results, bookmark: reached } = await send(home, sent, latest);
    latest = Math.max(latest ?? 0, reached);
    return results;
  });
  return standIn<D1DatabaseSession>("a D1 session", {
    ...statements,
    getBookmark: () => (latest === null ? null : bookmarkOf(latest)),
  });
}

export const bookmarkOf = (position: number): string =>
  `${position.toString(16).padStart(8, "0")}-00000000-00000000-${"0".repeat(32)}`;

/** @returns null for what D1 does not take as a bookmark */
export function positionOf(bookmark: string): number | null {
  const [, position] = /^([0-9a-f]{8})-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/.exec(bookmark) ?? [];
  return position === undefined ? null : Number.parseInt(position, 16);
}

function requirePosition(first: string): number {
  const position = first === "first-unconstrained" ? 0 : positionOf(first);
  if (position === null) throw new Error(`D1_ERROR: ${first} is no bookmark`);
  return position;
}

/** What D1 says when a call fails; the last one must not be tried again at once. */
const ERRORS = [
  "Network connection lost.",
  "D1_ERROR: Network connection lost.",
  "D1 DB storage caused object to be reset.",
  "D1_ERROR: Cannot resolve D1 DB due to transient issue on remote node.",
  "D1_ERROR: D1 DB is overloaded. Requests queued for too long.",
] as const;

function send(home: number, statements: readonly Statement[], bookmark: number | null) {
  const process = requireProcess();
  const { wire, d1, serviceDice, timeline } = process.world;
  const sentAt = timeline.now;
  return wire.call(process, {
    part: "d1",
    what: `D1 of home ${home}: ${statements.map(({ sql }) => nameOf(sql)).join(", ")}`,
    effect: () => d1.at(home).executeNear(statements, bookmark, timeline.now - sentAt),
    error: () => new Error(serviceDice.oneOf(ERRORS)),
  });
}

/** Verb and table, for the trace. */
function nameOf(sql: string): string {
  const [, verb = "?"] = /^\s*(\w+)/.exec(sql) ?? [];
  const [, table = "?"] = /(?:INTO|UPDATE|FROM)\s+"?(\w+)/i.exec(sql) ?? [];
  return `${verb.toLowerCase()} ${table}`;
}
