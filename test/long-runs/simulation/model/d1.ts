import { Sqlite, type Value } from "../platform/sqlite.ts";
import type { Timeline } from "../platform/timeline.ts";
import type { Counters, Row } from "./decide.ts";
import { Refused } from "./wire.ts";

export interface Statement {
  sql: string;
  parameters: readonly Value[];
}

/** The last entry that D1 has, and the counters after it. */
export interface Position extends Counters {
  sequence: number;
  entry: string;
}

/** All that D1 says of the one application. */
export interface Content {
  position: Position | null;
  rows: Row[];
}

const TICK_VALID_MILLISECONDS = 5000;

interface Commit {
  content: Content;
  tick: number;
  /** In milliseconds. */
  at: number;
}

const COLUMNS = ["key", "kind", "device", "user", "state", "number", "list", "cause", "place"] as const;

const SCHEMA = `
  CREATE TABLE position (application TEXT PRIMARY KEY, sequence INTEGER NOT NULL, entry TEXT NOT NULL,
    fresh INTEGER NOT NULL, list INTEGER NOT NULL, change INTEGER NOT NULL);
  CREATE TABLE item (key TEXT PRIMARY KEY, kind TEXT NOT NULL, device TEXT, user TEXT,
    state TEXT CHECK (state <> 'refused by D1'), number INTEGER, list INTEGER, cause TEXT, place TEXT UNIQUE)`;

/** One for all seeds, emptied for each. */
const sqlite = new Sqlite(SCHEMA);

const KINDS = ["badge", "invitation", "freed", "block", "change"] as const;
const text = (value: unknown) => (value === null || value === undefined ? null : String(value));
const whole = (value: unknown) => (value === null ? null : Number(value));

/** D1 with its Time Travel: what it was after each transaction, a restoration among them. */
export class Database {
  readonly #timeline: Timeline;
  readonly #commits: Commit[] = [];
  #content: Content = { position: null, rows: [] };
  /** Called after every transaction of the object. */
  onCommit: (before: Content, after: Content) => void = () => {};
  /** The last tick of the sweep, in milliseconds. */
  tick: number;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
    this.tick = timeline.now;
    sqlite.clear();
    this.#commit();
  }

  /** One transaction. @throws Refused when a statement fails; then nothing was changed */
  execute(statements: readonly Statement[]): void {
    const before = this.#content;
    sqlite.db.exec("BEGIN");
    try {
      for (const { sql, parameters } of statements) sqlite.run(sql, parameters);
      sqlite.db.exec("COMMIT");
    } catch (error) {
      sqlite.db.exec("ROLLBACK");
      throw new Refused(String(error));
    }
    this.#content = read();
    this.#commit();
    this.onCommit(before, this.#content);
  }

  read(): Content {
    return this.#content;
  }

  /** The sweep's transaction: changes nothing unless the last tick is the one that it read, nor when it comes late by D1's clock. */
  writeTick(tick: number, read: number, isTimed: boolean): void {
    if (this.tick !== read || (isTimed && this.#timeline.now > tick + TICK_VALID_MILLISECONDS)) return;
    this.tick = tick;
    this.#commit();
  }

  /** Times of what Time Travel reaches: of each transaction since `oldest`, and of the last one before. */
  moments(oldest: number): number[] {
    const times = this.#commits.map(({ at }) => at);
    const last = times.findLast((at) => at < oldest);
    return [...(last === undefined ? [] : [last]), ...times.filter((at) => at >= oldest)];
  }

  /** Time Travel to what it was at some moment. */
  restore(moment: number): void {
    this.#become(this.#commits.findLast(({ at }) => at <= moment));
  }

  /** Time Travel to the last that had a position. */
  restoreForward(): void {
    this.#become(this.#commits.findLast(({ content }) => content.position !== null));
  }

  #become(found: Commit | undefined): void {
    if (!found) return;
    sqlite.clear();
    const { position, rows } = found.content;
    if (position) sqlite.run("INSERT INTO position VALUES ('app', ?, ?, ?, ?, ?)", Object.values(position));
    for (const { sql, parameters } of rows.map((row) => write(null, row))) sqlite.run(sql, parameters);
    this.#content = found.content;
    this.tick = found.tick;
    this.#commit();
  }

  #commit(): void {
    this.#commits.push({ content: this.#content, tick: this.tick, at: this.#timeline.now });
  }
}

function read(): Content {
  const [found] = sqlite.run("SELECT * FROM position").rows;
  const position = found && {
    sequence: Number(found.sequence),
    entry: String(found.entry),
    fresh: Number(found.fresh),
    list: Number(found.list),
    change: Number(found.change),
  };
  const rows = sqlite.run("SELECT * FROM item ORDER BY key").rows.map(
    (row): Row => ({
      key: String(row.key),
      kind: KINDS.find((kind) => kind === row.kind) ?? "change",
      device: text(row.device),
      user: text(row.user),
      state: text(row.state),
      number: whole(row.number),
      list: whole(row.list),
      cause: text(row.cause),
      place: text(row.place),
    }),
  );
  return { position: position ?? null, rows };
}

/** How one row becomes another. */
export function write(before: Row | null, after: Row | null): Statement {
  if (after === null) return { sql: "DELETE FROM item WHERE key = ?", parameters: [before?.key ?? null] };
  const values = COLUMNS.map((column) => after[column]);
  if (before === null) {
    return { sql: `INSERT INTO item (${COLUMNS}) VALUES (${COLUMNS.map(() => "?")})`, parameters: values };
  }
  const assignments = COLUMNS.map((column) => `${column} = ?`);
  return { sql: `UPDATE item SET ${assignments} WHERE key = ?`, parameters: [...values, before.key] };
}
