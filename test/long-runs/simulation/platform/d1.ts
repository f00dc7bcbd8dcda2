import { readFileSync } from "node:fs";
import { migrationFiles } from "../../../../src/admin/platform/migrations.ts";
import { homeOf } from "../../../../src/shared/homes.ts";
import { type ApplicationId, applicationId } from "../../../../src/shared/identifiers.ts";
import { Dice } from "../../dice.ts";
import { Part } from "../member.ts";
import { MINUTE } from "../plan.ts";
import type { World } from "../world.ts";
import { type Row, Sqlite, type Value } from "./sqlite.ts";

/** A row that a transaction changed; null where there was none before, or is none after. */
export interface Change {
  table: string;
  before: Row | null;
  after: Row | null;
}

export interface Statement {
  sql: string;
  parameters?: readonly Value[];
}

export type Result = ReturnType<typeof run>[number];

/** With the position that D1 has reached. */
export interface Executed {
  results: Result[];
  bookmark: number;
}

export const OWNED_TABLES = ["badge", "invitation", "blocked_user", "freed_number"];
/** What the service writes. */
const SERVICE_TABLES = ["application_head", ...OWNED_TABLES, "webhook_event"];
const WATCHED_TABLES = [...SERVICE_TABLES, "script_command", "application", "application_secret", "heartbeat"];
/**
 * Settings and secrets are not restored: they do not come back by themselves, and the administrator would set them again. The end
 * of a range is: entries bring it back (contract section 21).
 */
const RESTORED_TABLES = [...SERVICE_TABLES, "script_command", "history", "signing_key", "status_list", "heartbeat"];

/** How often a read that a copy may respond to goes to one. */
const COPY_CHANCE = 0.8;
const OTHER_COPY_CHANCE = 0.1;
/** How often a read finds that all copies have just stopped: chosen by the seed. */
const STOP_CHANCES = [0, 0.05, 0.2] as const;

/** How often the network keeps a copy of an entry's batch, and how long at most, in milliseconds. */
const STRAY_CHANCE = 0.2;
const STRAY_MILLISECONDS = 600_000;

/** Of the transaction that runs. */
let changes: Change[] = [];
/** Whether changes are told. */
export const watching = { isOn: true };
let dice = new Dice(0);
let now = () => 0;

export function makeHomeDatabase(): Sqlite {
  const database = new Sqlite(
    migrationFiles()
      .map((file) => readFileSync(file, "utf8"))
      .join("\n"),
  );
  database.db.function("randomblob", (bytes) => new Uint8Array(Number(bytes)).map(() => dice.below(256)));
  database.db.function("unixepoch", { varargs: true }, () => now() / 1000);
  return database;
}

const homes = [makeHome(), makeHome()];

function makeHome() {
  const [primary, copy] = [makeHomeDatabase(), makeHomeDatabase()];
  for (const table of WATCHED_TABLES) watch(primary, table);
  return { primary, copy };
}

/** JSON in a column, which SQLite has just made, is a text in the row. */
function parseRow(text: string): Row | null {
  const row: Row | null = JSON.parse(text);
  for (const [name, value] of Object.entries(row ?? {})) {
    if (row !== null && typeof value === "object" && value !== null) row[name] = JSON.stringify(value);
  }
  return row;
}

/** SQLite itself tells of every changed row, whoever changed it. */
function watch({ db }: Sqlite, table: string): void {
  const columns = db.prepare(`SELECT * FROM ${table}`).columns();
  db.function("is_watched", () => Number(watching.isOn));
  const json = (row: string) => `json_object(${columns.map(({ name }) => `'${name}', ${row}.${name}`).join(", ")})`;
  db.function(`changed_${table}`, (before, after) => {
    changes.push({ table, before: parseRow(String(before)), after: parseRow(String(after)) });
    return null;
  });
  for (const [event, before, after] of [
    ["INSERT", "'null'", json("NEW")],
    ["UPDATE", json("OLD"), json("NEW")],
    ["DELETE", json("OLD"), "'null'"],
  ]) {
    db.exec(`CREATE TEMP TRIGGER watch_${table}_${event} AFTER ${event} ON ${table} WHEN is_watched()
      BEGIN SELECT changed_${table}(${before}, ${after}); END`);
  }
}

/** The D1s of all homes. */
export class D1Homes {
  readonly #servers: readonly D1Server[];

  constructor(world: World) {
    this.#servers = homes.map(({ primary, copy }, index) => {
      for (const database of [primary, copy]) database.clear();
      return new D1Server(world, { home: index + 1, primary, copy });
    });
    dice = world.dice.of("d1");
    now = () => world.timeline.now;
  }

  at(home: number): D1Server {
    const server = this.#servers[home - 1];
    if (server === undefined) throw new Error(`there is no home ${home}`);
    return server;
  }

  of(applicationId: ApplicationId): D1Server {
    return this.at(homeOf(applicationId));
  }

  /** Whether an application's D1 was restored at some moment of a time. */
  wasRestored(id: string, from: number, to: number): boolean {
    return this.of(applicationId.parse(id)).wasRestored(from, to);
  }

  headOf(id: string): Row | undefined {
    return this.look("SELECT * FROM application_head WHERE application_id = ?", id)[0];
  }

  /** For whoever looks on: the rows of every home. */
  look(sql: string, ...parameters: Value[]): Row[] {
    return this.#servers.flatMap((server) => server.look(sql, ...parameters));
  }
}

/** One D1's side: one transaction at a time, in the order in which they arrive; and its read copies. */
class D1Server extends Part<{ home: number; primary: Sqlite; copy: Sqlite }> {
  readonly primary = this.subject.primary;
  readonly #copy = this.subject.copy;
  readonly #dice = this.world.dice.of(`sessions of home ${this.subject.home}`);
  readonly #stopChance = this.#dice.oneOf(STOP_CHANCES);
  /** What each transaction changed, in SQLite's own format, and when, in milliseconds. */
  readonly #commits: { changeset: Uint8Array; at: number }[] = [];
  /** Those that the copy has. */
  #copied = 0;
  #lagMilliseconds = 0;
  /** When all copies stopped, and when they go on, in milliseconds. */
  #stoppedAt = 0;
  #goOnAt = 0;
  /** Commits before the last restoration, which no copy has any more. */
  #oldest = 0;
  /** When it was restored, in milliseconds. */
  readonly #restorations: number[] = [];
  /** Batches that come once more, and when they came first, in milliseconds. */
  #strays: { statements: readonly Statement[]; at: number }[] = [];
  /** The first moment to which it may be restored. */
  earliest = 0;

  /** Commits so far. A bookmark stands for this number. */
  get position(): number {
    return this.#commits.length;
  }

  /** From now on it is not restored to what it was before. */
  keepFrom(): void {
    this.earliest = this.position;
  }

  /** The first moment to which it may be restored, of those since a time in milliseconds. */
  earliestSince(time: number): number {
    const since = this.#commits.findIndex(({ at }) => at >= time);
    return Math.max(this.earliest, since === -1 ? this.position : since);
  }

  /** Since when the primary is at a position, in milliseconds; Infinity: it is not there yet. */
  since(position: number): number {
    const at = position === 0 ? 0 : (this.#commits[position - 1]?.at ?? Infinity);
    // What was before it counts no more, unless there was another commit at the same time.
    return this.#commits[position]?.at === at ? at : at + 0.5;
  }

  /** For whoever looks on: reads without being part of the service. */
  look(sql: string, ...parameters: Value[]): Row[] {
    return this.primary.run(sql, parameters).rows;
  }

  /** One transaction. @throws Error when a statement fails, or a restoration cancelled it; then nothing was changed */
  execute(statements: readonly Statement[], lateMilliseconds = 0): Result[] {
    changes = [];
    const results = this.#commit(() => run(this.primary, statements, true));
    this.world.rows.see(changes, lateMilliseconds);
    const heartbeat = changes.find(({ table }) => table === "heartbeat");
    if (heartbeat) this.world.replica.seeHeartbeat(this.subject.home, heartbeat, lateMilliseconds);
    return results;
  }

  /**
   * The batch of an entry, which the network may bring once more: after a restoration, just when D1 is again at the entry before it.
   *
   * @throws Error when a statement fails; then nothing was changed
   */
  #executeEntry(statements: readonly Statement[], lateMilliseconds: number): Result[] {
    const { faults, timeline, plan } = this.world;
    const results = this.execute(statements, lateMilliseconds);
    if (plan.restorations === 0 || !faults.isOn) return results;
    for (const stray of this.#strays.filter(
      ({ at }) => this.wasRestored(at, timeline.now) && timeline.now - at < STRAY_MILLISECONDS,
    )) {
      try {
        this.execute(stray.statements, timeline.now - stray.at);
        this.#strays = this.#strays.filter((other) => other !== stray);
      } catch {
        // D1 is not where it began: it is still under way.
      }
    }
    if (this.#dice.chance(STRAY_CHANCE)) this.#strays.push({ statements, at: timeline.now });
    return results;
  }

  /** Whether it was restored at some moment of a time. */
  wasRestored(from: number, to: number): boolean {
    return this.#restorations.some((at) => at >= from && at <= to);
  }

  /**
   * The same within a session, whose bookmark says how new the copy must be at least that responds.
   *
   * @param bookmark a position; null: only the primary may respond
   */
  executeNear(
    statements: readonly Statement[],
    bookmark: number | null,
    lateMilliseconds: number,
  ): Executed | Promise<Executed> {
    const isRead = statements.every(({ sql }) => /^\s*SELECT/i.test(sql));
    if (bookmark !== null && isRead && this.#dice.chance(COPY_CHANCE)) {
      this.#follow(bookmark);
      return { results: run(this.#copy, statements, false), bookmark: this.#copied };
    }
    const write = () =>
      isEntry(statements)
        ? this.#executeEntry(statements, lateMilliseconds)
        : this.execute(statements, lateMilliseconds);
    const results = isRead ? run(this.primary, statements, true) : write();
    return { results, bookmark: this.position };
  }

  /**
   * The copy is D1 as it was a while ago, though not before a bookmark, for which a real one waits. How long ago changes now and
   * then; only then it goes back, as if another copy responded. Sometimes all copies stop: until they go on, none is newer than
   * D1 was then, and a newer bookmark is waited for in vain.
   */
  #follow(bookmark: number): void {
    const { timeline, faults, plan } = this.world;
    const long = this.#dice.oneOf([5 * MINUTE, 4 * plan.thinkMilliseconds]);
    if (timeline.now >= this.#goOnAt && this.#dice.chance(this.#stopChance)) {
      this.#stoppedAt = timeline.now;
      this.#goOnAt = timeline.now + this.#dice.below(long);
    }
    const isOther = this.#dice.chance(OTHER_COPY_CHANCE);
    if (isOther) this.#lagMilliseconds = this.#dice.below(this.#dice.oneOf([50, long]));
    const sent = faults.isOn && timeline.now < this.#goOnAt ? this.#stoppedAt : timeline.now;
    if (bookmark > this.#positionAt(sent)) throw new Error("D1_ERROR: the copy did not become as new as the bookmark.");
    const reached = Math.max(bookmark, this.#positionAt(sent - (faults.isOn ? this.#lagMilliseconds : 0)));
    if (isOther && reached < this.#copied) this.#startCopyAgain();
    const position = Math.max(reached, this.#copied);
    this.#replay(this.#copy, this.#copied, position);
    this.#copied = position;
  }

  /** Where the primary was then; since a restoration, not before it. */
  #positionAt(time: number): number {
    return Math.max(this.#oldest, this.#commits.findLastIndex(({ at }) => at <= time) + 1);
  }

  #startCopyAgain(): void {
    this.#copy.clear();
    this.#copied = 0;
  }

  /** Time Travel to what it was after some commit. */
  restore(position: number): void {
    if (position < this.#copied) this.#startCopyAgain();
    this.#replay(this.#copy, this.#copied, position);
    this.#copied = position;
    const { rows: ranges } = this.#copy.run("SELECT last_number, id FROM application");
    changes = [];
    this.#commit(() => {
      for (const table of RESTORED_TABLES) this.primary.run(`DELETE FROM ${table}`);
      for (const table of RESTORED_TABLES) {
        for (const row of this.#copy.run(`SELECT * FROM ${table}`).rows) this.primary.insert(table, row);
      }
      for (const range of ranges) {
        this.primary.run("UPDATE application SET last_number = ? WHERE id = ?", Object.values(range));
      }
    });
    this.#oldest = this.position;
    const { history, erased, timeline } = this.world;
    this.#restorations.push(timeline.now);
    // A row that was deleted and inserted again as it was has not changed.
    const byRow = Map.groupBy(changes, ({ table, before, after }) => JSON.stringify([table, before ?? after]));
    for (const [change, ...others] of byRow.values()) {
      if (change && others.length === 0) history.see(erased.knownChange(change));
    }
  }

  #commit<T>(work: () => T): T {
    const { result, changeset } = this.primary.transaction(work);
    if (changeset.length > 0) this.#commits.push({ changeset, at: this.world.timeline.now });
    return result;
  }

  #replay({ db }: Sqlite, from: number, to: number): void {
    for (const { changeset } of this.#commits.slice(from, to)) {
      if (!db.applyChangeset(changeset)) throw new Error("a copy is not what it was made from");
    }
  }
}

/** Whether a batch has entries of a log. One that copies or replaces rows begins with a fence, too. */
export function isEntry([fence, ...statements]: readonly Statement[]): boolean {
  const isFence =
    fence?.sql.includes('INTO "application_head"') && !fence.parameters?.includes(Number.MAX_SAFE_INTEGER);
  return isFence === true && statements.every(({ sql }) => !/^\s*SELECT/i.test(sql));
}

export function run(database: Sqlite, statements: readonly Statement[], isPrimary: boolean) {
  return statements.map(({ sql, parameters }) => {
    const { rows, changes: changed } = database.run(sql, parameters);
    return { results: rows, meta: { changes: changed, served_by_primary: isPrimary } };
  });
}
