import type { Dice } from "../../dice.ts";
import { Member } from "../member.ts";
import type { World } from "../world.ts";
import type { Row, Sqlite, Value } from "./sqlite.ts";

/** How long a write takes until it is durable, in milliseconds; and where a seed has slow storage, now and then. */
const FLUSH_MILLISECONDS = 5;
const SLOW_FLUSH_MILLISECONDS = 1500;

/** The size that the platform reports: the log is never too large here. */
const DATABASE_BYTES = 4096;

/** Tables that stay when the rows go: what says which migrations were applied. */
const KEPT_TABLE = "__drizzle_migrations";

/** What an object keeps when its instance dies. */
export class StoredObject {
  readonly sqlite: Sqlite;
  readonly values = new Map<string, unknown>();
  /** When its alarm is due, in milliseconds; null: it is not set. */
  alarm: number | null = null;

  constructor(sqlite: Sqlite) {
    this.sqlite = sqlite;
  }
}

/** Every row of an object's database goes. */
export function emptyObject({ sqlite }: Pick<StoredObject, "sqlite">): void {
  for (const table of tablesOf(sqlite)) if (table !== KEPT_TABLE) sqlite.run(`DELETE FROM "${table}"`);
}

const tablesOf = (sqlite: Sqlite): string[] =>
  sqlite.run("SELECT name FROM sqlite_master WHERE type = 'table'").rows.map(({ name }) => String(name));

/** The platform resets the object, so nobody need handle it. */
export class StorageFailure extends Error {}

/**
 * An instance's storage (`ctx.storage`). What it writes is there at once for itself, and durable a little later, all or nothing of
 * what was written since; if the instance dies before, it is lost. Until then nothing leaves the instance: that is the output gate.
 *
 * An instance that another has superseded reads what was there then. It fails when it writes.
 */
export class ObjectStorage extends Member {
  readonly #object: StoredObject;
  readonly #dice: Dice;
  #sqlite: Sqlite;
  #isSuperseded = false;
  /** Resolved when what was written so far is durable; null: all of it is. */
  #flush: PromiseWithResolvers<void> | null = null;
  #alarm: { at: number | null } | null = null;
  #depth = 0;
  #broken: Promise<void> | null = null;
  readonly #die: () => void;
  readonly #setAlarm: (at: number) => void;

  /** @param alarmSet is called when an alarm is durable */
  constructor(world: World, object: StoredObject, dice: Dice, die: () => void, alarmSet: (at: number) => void) {
    super(world);
    this.#object = object;
    this.#sqlite = object.sqlite;
    this.#dice = dice;
    this.#die = die;
    this.#setAlarm = alarmSet;
  }

  /** @returns resolves when what was written so far is durable, never if it is lost; null: it is durable */
  get gate(): Promise<void> | null {
    return this.#broken ?? this.#flush?.promise ?? null;
  }

  get isSuperseded(): boolean {
    return this.#isSuperseded;
  }

  get alarm(): number | null {
    return this.#alarm ? this.#alarm.at : this.#object.alarm;
  }

  /** The storage fails: nothing leaves the instance any more, and it does not outlive it for long. */
  fail(): Error {
    this.#broken = new Promise(() => {});
    this.world.faults.struck++;
    this.world.timeline.after(this.#dice.below(50), this.#die);
    return new StorageFailure("The object's storage failed.");
  }

  setAlarm(at: number | null): void {
    this.#write();
    this.#alarm = { at };
  }

  getValue(name: string): unknown {
    return this.#object.values.get(name);
  }

  putValue(name: string, value: unknown): void {
    if (!this.#isSuperseded) this.#object.values.set(name, value);
  }

  readonly databaseSize = DATABASE_BYTES;

  execute(sql: string, parameters: readonly Value[]): { columns: string[]; rows: Value[][] } {
    if (parameters.length === 0 && /^\s*CREATE/i.test(sql)) {
      this.#sqlite.db.exec(sql);
      return { columns: [], rows: [] };
    }
    if (!/^\s*SELECT/i.test(sql)) this.#write();
    return this.#sqlite.raw(sql, parameters);
  }

  /** All of some work or nothing; may be nested. */
  transaction<T>(work: () => T): T {
    if (this.#depth > 0 || this.#flush) return this.#savepoint(work);
    // One that turns out to write is committed when what it wrote becomes durable.
    const sqlite = this.#sqlite;
    sqlite.db.exec("BEGIN");
    try {
      return this.#savepoint(work);
    } finally {
      if (!this.#flush) sqlite.db.exec("COMMIT");
    }
  }

  #savepoint<T>(work: () => T): T {
    const name = `level_${this.#depth++}`;
    const { db } = this.#sqlite;
    db.exec(`SAVEPOINT ${name}`);
    try {
      const result = work();
      db.exec(`RELEASE ${name}`);
      return result;
    } catch (error) {
      db.exec(`ROLLBACK TO ${name}; RELEASE ${name}`);
      throw error;
    } finally {
      this.#depth--;
    }
  }

  /** The instance is dead: what is not durable never was. */
  end(): void {
    if (this.#flush) this.#sqlite.db.exec("ROLLBACK");
    this.#flush = null;
  }

  /** Another instance begins on what is durable. This one goes on with a copy, of which nothing becomes durable any more. */
  supersede(copy: Sqlite): void {
    for (const table of tablesOf(this.#sqlite)) {
      copy.run(`DELETE FROM "${table}"`);
      for (const row of this.#sqlite.run(`SELECT * FROM "${table}"`).rows) copy.insert(table, row);
    }
    if (this.#flush) {
      this.#sqlite.db.exec("ROLLBACK");
      copy.db.exec("BEGIN");
    }
    this.#sqlite = copy;
    this.#isSuperseded = true;
  }

  #write(): void {
    if (this.#flush) return;
    const { timeline, faults } = this.world;
    // A write fails at once, or nothing leaves the instance any more after it.
    if (this.#isSuperseded && this.#dice.chance(0.5)) throw this.fail();
    if (this.#depth === 0) this.#sqlite.db.exec("BEGIN");
    const flush = Promise.withResolvers<void>();
    this.#flush = flush;
    const fault = faults.draw("storage");
    const most = fault === "late" ? SLOW_FLUSH_MILLISECONDS : FLUSH_MILLISECONDS;
    timeline.after(this.#dice.below(most), () => {
      if (this.#flush !== flush) return;
      // What was written in one step with what failed is lost with it.
      if (this.#broken || this.#isSuperseded || fault === "before") return this.#die();
      this.#sqlite.db.exec("COMMIT");
      this.#flush = null;
      if (this.#alarm) this.#keepAlarm(this.#alarm.at);
      if (fault === "after") return this.#die();
      flush.resolve();
    });
  }

  #keepAlarm(at: number | null): void {
    this.#object.alarm = at;
    this.#alarm = null;
    if (at !== null) this.#setAlarm(at);
  }
}

/** `SqlStorageCursor`, as far as Drizzle and the service use it. */
export function cursorOf({ columns, rows }: { columns: string[]; rows: Value[][] }) {
  const objects = () => rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]])) as Row);
  const one = () => {
    const [row, ...more] = objects();
    if (!row || more.length > 0) throw new Error("Expected exactly one result from SQL query");
    return row;
  };
  const values = objects()[Symbol.iterator]();
  return {
    toArray: objects,
    one,
    next: () => values.next(),
    raw: () => ({ toArray: () => rows }),
    columnNames: columns,
  };
}
