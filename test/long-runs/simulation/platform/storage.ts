import type { Dice } from "../../dice.ts";
import { Part } from "../member.ts";
import type { Sqlite, Value } from "./sqlite.ts";

/** How long a write takes until it is durable, in milliseconds; and where a seed has slow storage, now and then. */
const FLUSH_MILLISECONDS = 5;
const SLOW_FLUSH_MILLISECONDS = 1500;

/** Tables that stay when the rows go: what says which migrations were applied. */
const KEPT_TABLE = "__drizzle_migrations";

/** What an object keeps when its instance dies. */
export interface StoredObject {
  sqlite: Sqlite;
  values: Map<string, unknown>;
  /** When its alarm is due, in milliseconds; null: it is not set. */
  alarm: number | null;
}
export function emptyObject(sqlite: Sqlite): void {
  for (const table of tablesOf(sqlite)) if (table !== KEPT_TABLE) sqlite.run(`DELETE FROM "${table}"`);
}

const tablesOf = (sqlite: Sqlite): string[] =>
  sqlite.run("SELECT name FROM sqlite_master WHERE type = 'table'").rows.map(({ name }) => String(name));

interface Instance {
  object: StoredObject;
  dice: Dice;
  die(): void;
  /** An alarm is durable. */
  setAlarm(at: number): void;
}

/** The platform resets the object, so nobody need handle it. */
export class StorageFailure extends Error {}

/**
 * An instance's storage (`ctx.storage`). What it writes is there at once for itself, and durable a little later, all or nothing of
 * what was written since; if the instance dies before, it is lost. Until then nothing leaves the instance: that is the output gate.
 *
 * An instance that another has superseded reads what was there then. It fails when it writes.
 */
export class ObjectStorage extends Part<Instance> {
  readonly #object = this.subject.object;
  readonly #dice = this.subject.dice;
  #sqlite = this.#object.sqlite;
  #isSuperseded = false;
  /** Resolved when what was written so far is durable; null: all of it is. */
  #flush: PromiseWithResolvers<void> | null = null;
  /** Set, and not durable yet. */
  #alarm: number | null = null;
  #broken: Promise<void> | null = null;

  /** @returns resolves when what was written so far is durable, never if it is lost; null: it is durable */
  get gate(): Promise<void> | null {
    return this.#broken ?? this.#flush?.promise ?? null;
  }

  get alarm(): number | null {
    return this.#alarm ?? this.#object.alarm;
  }

  /** The storage fails: nothing leaves the instance any more, and it does not outlive it for long. */
  fail(): Error {
    this.#broken = new Promise(() => {});
    this.world.faults.struck++;
    this.world.timeline.after(this.#dice.below(50), this.subject.die);
    return new StorageFailure("The object's storage failed.");
  }

  setAlarm(at: number): void {
    this.#write();
    this.#alarm = at;
  }

  execute(sql: string, parameters: readonly Value[]): { columns: string[]; rows: Value[][] } {
    if (parameters.length === 0 && /^\s*CREATE/i.test(sql)) {
      this.#sqlite.db.exec(sql);
      return { columns: [], rows: [] };
    }
    if (!/^\s*SELECT/i.test(sql)) this.#write();
    return this.#sqlite.raw(sql, parameters);
  }

  /** All of some work or nothing. One that turns out to write is committed when what it wrote becomes durable. */
  transaction<T>(work: () => T): T {
    const { db } = this.#sqlite;
    const isOutermost = !db.isTransaction;
    if (isOutermost) db.exec("BEGIN");
    db.exec("SAVEPOINT work");
    try {
      const result = work();
      db.exec("RELEASE work");
      return result;
    } catch (error) {
      db.exec("ROLLBACK TO work; RELEASE work");
      throw error;
    } finally {
      if (isOutermost && !this.#flush) db.exec("COMMIT");
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
    if (!this.#sqlite.db.isTransaction) this.#sqlite.db.exec("BEGIN");
    const flush = Promise.withResolvers<void>();
    this.#flush = flush;
    const fault = faults.draw("storage");
    const most = fault === "late" ? SLOW_FLUSH_MILLISECONDS : FLUSH_MILLISECONDS;
    timeline.after(this.#dice.below(most), () => {
      if (this.#flush !== flush) return;
      // What was written in one step with what failed is lost with it.
      if (this.#broken || this.#isSuperseded || fault === "before") return this.subject.die();
      this.#sqlite.db.exec("COMMIT");
      this.#flush = null;
      if (this.#alarm !== null) {
        this.#object.alarm = this.#alarm;
        this.subject.setAlarm(this.#alarm);
        this.#alarm = null;
      }
      if (fault === "after") return this.subject.die();
      flush.resolve();
    });
  }
}

/** `SqlStorageCursor`, as far as Drizzle and the service use it. */
export const cursorOf = ({ columns, rows }: { columns: string[]; rows: Value[][] }) => ({
  toArray: () => rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]]))),
  raw: () => ({ toArray: () => rows }),
});
