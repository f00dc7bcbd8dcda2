import { Sqlite, type Value } from "../platform/sqlite.ts";
import type { Timeline } from "../platform/timeline.ts";
import type { Counters, Row } from "./decide.ts";

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

interface Commit {
  content: Content;
  tick: number;
  /** In milliseconds. */
  at: number;
}

/** SQLite's own error: D1 rolled the batch back. */
export class Refused extends Error {}

const TICK_VALID_MILLISECONDS = 5000;
const START: Position = { sequence: 0, entry: "start", fresh: 0, list: 0, change: 0 };

/** One for all seeds, emptied for each. */
const sqlite = new Sqlite(`
  CREATE TABLE position (application TEXT PRIMARY KEY, sequence INTEGER NOT NULL, entry TEXT NOT NULL,
    fresh INTEGER NOT NULL, list INTEGER NOT NULL, change INTEGER NOT NULL);
  CREATE TABLE item (key TEXT PRIMARY KEY, row TEXT NOT NULL CHECK (row ->> 'state' <> 'refused by D1'));
  CREATE UNIQUE INDEX one_place ON item (row ->> 'place')`);

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
    this.#become(this.#content);
    // The application is made a moment later: D1 may be restored to when there was none.
    timeline.now++;
    this.#become({ position: START, rows: [] });
  }

  /** One transaction. @throws Refused when a statement fails; then nothing was changed */
  execute(statements: readonly Statement[]): void {
    const before = this.#content;
    try {
      sqlite.transaction(() => run(statements));
    } catch (error) {
      throw new Refused(String(error));
    }
    this.#commit(read());
    this.onCommit(before, this.#content);
  }

  read(): Content {
    return this.#content;
  }

  /** The sweep's transaction: changes nothing unless the last tick is the one that it read, nor when it comes late by D1's clock. */
  writeTick(tick: number, read: number, isTimed: boolean): void {
    if (this.tick !== read || (isTimed && this.#timeline.now > tick + TICK_VALID_MILLISECONDS)) return;
    this.tick = tick;
    this.#commit(this.#content);
  }

  /** Times of what Time Travel reaches: of each transaction since `oldest`, and of the last one before. */
  moments(oldest: number): number[] {
    const times = this.#commits.map(({ at }) => at);
    return times.slice(
      Math.max(
        0,
        times.findLastIndex((at) => at < oldest),
      ),
    );
  }

  /** Time Travel to what it was at some moment. */
  restore(moment: number): void {
    this.#return(this.#commits.findLast(({ at }) => at <= moment));
  }

  /** Time Travel to the last that had a position. */
  restoreForward(): void {
    this.#return(this.#commits.findLast(({ content }) => content.position !== null));
  }

  #return(commit: Commit | undefined): void {
    if (!commit) return;
    this.tick = commit.tick;
    this.#become(commit.content);
  }

  #become(content: Content): void {
    const { position, rows } = content;
    sqlite.clear();
    if (position) sqlite.run("INSERT INTO position VALUES ('app', ?, ?, ?, ?, ?)", Object.values(position));
    run(rows.map((row) => write(null, row)));
    this.#commit(content);
  }

  #commit(content: Content): void {
    this.#content = content;
    this.#commits.push({ content, tick: this.tick, at: this.#timeline.now });
  }
}

function run(statements: readonly Statement[]): void {
  for (const { sql, parameters } of statements) sqlite.run(sql, parameters);
}

function read(): Content {
  const columns = "'sequence', sequence, 'entry', entry, 'fresh', fresh, 'list', list, 'change', change";
  const [position] = sqlite.run(`SELECT json_object(${columns}) AS json FROM position`).rows;
  const rows = sqlite.run("SELECT row FROM item ORDER BY key").rows.map(({ row }) => JSON.parse(String(row)));
  return { position: position ? JSON.parse(String(position.json)) : null, rows };
}

/** How one row becomes another. */
export function write(before: Row | null, after: Row | null): Statement {
  const key = (after ?? before)?.key ?? null;
  if (after === null) return { sql: "DELETE FROM item WHERE key = ?", parameters: [key] };
  const row = JSON.stringify(after);
  if (before === null) return { sql: "INSERT INTO item VALUES (?, ?)", parameters: [key, row] };
  return { sql: "UPDATE item SET row = ?2 WHERE key = ?1", parameters: [key, row] };
}
