import { FREED_CHUNK_NUMBERS } from "../../shared/limits.ts";
import { firstRow, integer, type Row } from "./sql.ts";

/** Which freed numbers may be leased now. */
export interface FreedRules {
  lastNumber: number;
  reuseAfterSeconds: number;
  /** Milliseconds. */
  now: number;
}

interface FreedNumber {
  number: number;
  freedAt: number;
}

/**
 * Numbers that were leased and released, in the object's storage. The next one is drawn at random when it is taken, so
 * reserving and revoking numbers does not let anybody choose the number that another user gets (contract section 5).
 *
 * A number is in one of three tables: `free` while it rests, `ready` once it may be drawn, `beyond` while it lies beyond
 * the application's range. `ready` has slots 1, 2, … without a gap, so a draw costs the same however many there are.
 */
export class FreedNumbers {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** @param freedAt milliseconds; in the past if an invitation's end is noticed late */
  add(number: number, freedAt: number): void {
    this.#sql.exec("INSERT OR IGNORE INTO free (number, freed_at) VALUES (?, ?)", number, freedAt);
  }

  /** Sets a number aside until the range covers it. */
  setAside(number: number, freedAt: number): void {
    this.#sql.exec("INSERT OR IGNORE INTO beyond (number, freed_at) VALUES (?, ?)", number, freedAt);
  }

  /**
   * Moves a bounded number of numbers to the tables where they now belong. Every lease calls it, and one call moves far more
   * numbers than one release adds, so the tables catch up quickly.
   */
  update(rules: FreedRules): void {
    const due = this.#findDue(rules);
    if (due.isCovered) this.#returnCovered(rules);
    if (due.isAhead) this.#correctClock(rules);
    if (due.hasRested || due.isCovered) this.#moveRested(rules);
    if (due.isOutside) this.#setOutsideAside(rules);
  }

  /** Whether `update` has nothing left to move. */
  isUpToDate(rules: FreedRules): boolean {
    return !Object.values(this.#findDue(rules)).includes(true);
  }

  /** Draws one of the ready numbers and takes it, or null when there is none. */
  take(rules: FreedRules): number | null {
    for (let draw = 0; draw < FREED_CHUNK_NUMBERS; draw++) {
      const count = this.countReady();
      if (count === 0) return null;
      const { number, freedAt } = this.#takeSlot(1 + randomBelow(count), count);
      if (number > rules.lastNumber) this.setAside(number, freedAt);
      // It became ready under a shorter reuse delay, or before the clock jumped back.
      else if (freedAt > restedBefore(rules)) this.add(number, Math.min(freedAt, rules.now));
      else return number;
    }
    return null;
  }

  countReady(): number {
    return integer(firstRow(this.#sql, "SELECT coalesce(max(slot), 0) AS count FROM ready")?.count);
  }

  /** Ready numbers drawn at random, without taking them: all when there are no more than `count`. */
  sample(count: number): number[] {
    const ready = this.countReady();
    const slots = new Set<number>();
    while (slots.size < Math.min(count, ready)) slots.add(ready <= count ? slots.size + 1 : 1 + randomBelow(ready));
    return this.#sql
      .exec("SELECT number FROM ready WHERE slot IN (SELECT value FROM json_each(?))", JSON.stringify([...slots]))
      .toArray()
      .map(({ number }) => integer(number));
  }

  /** Removes numbers that D1 already has. */
  remove(numbers: Iterable<number>): void {
    const list = JSON.stringify([...numbers]);
    this.#sql.exec("DELETE FROM free WHERE number IN (SELECT value FROM json_each(?))", list);
    this.#sql.exec("DELETE FROM beyond WHERE number IN (SELECT value FROM json_each(?))", list);
    this.#takeSlots(
      this.#sql.exec("SELECT slot FROM ready WHERE number IN (SELECT value FROM json_each(?))", list).toArray(),
    );
  }

  #findDue(rules: FreedRules) {
    const due = firstRow(
      this.#sql,
      `SELECT EXISTS (SELECT 1 FROM free WHERE freed_at <= ?1) AS rested,
         EXISTS (SELECT 1 FROM free WHERE freed_at > ?2) AS ahead,
         EXISTS (SELECT 1 FROM beyond WHERE number <= ?3) AS covered,
         EXISTS (SELECT 1 FROM ready WHERE number > ?3) AS outside`,
      restedBefore(rules),
      wrongAfter(rules),
      rules.lastNumber,
    );
    return {
      hasRested: due?.rested === 1,
      isAhead: due?.ahead === 1,
      isCovered: due?.covered === 1,
      isOutside: due?.outside === 1,
    };
  }

  #moveRested(rules: FreedRules): void {
    const rested = this.#sql
      .exec(
        `DELETE FROM free WHERE id IN (SELECT id FROM free WHERE freed_at <= ?1 ORDER BY freed_at, id LIMIT ?2)
         RETURNING number, freed_at`,
        restedBefore(rules),
        FREED_CHUNK_NUMBERS,
      )
      .toArray()
      .map(toFreedNumber);
    for (const { number, freedAt } of rested) {
      // SQLite assigns the next slot: the largest rowid plus one.
      this.#sql.exec("INSERT OR IGNORE INTO ready (number, freed_at) VALUES (?, ?)", number, freedAt);
    }
  }

  /** Restarts the reuse delay of numbers freed in the future: a wrong clock must not hold them back for years. */
  #correctClock(rules: FreedRules): void {
    this.#sql.exec(
      `UPDATE free SET freed_at = ?1
       WHERE id IN (SELECT id FROM free WHERE freed_at > ?1 ORDER BY freed_at DESC LIMIT ?2)`,
      rules.now,
      FREED_CHUNK_NUMBERS,
    );
  }

  #returnCovered({ lastNumber }: FreedRules): void {
    const covered = this.#sql
      .exec(
        `DELETE FROM beyond WHERE number IN (SELECT number FROM beyond WHERE number <= ?1 ORDER BY number LIMIT ?2)
         RETURNING number, freed_at`,
        lastNumber,
        FREED_CHUNK_NUMBERS,
      )
      .toArray()
      .map(toFreedNumber);
    for (const { number, freedAt } of covered) this.add(number, freedAt);
  }

  #setOutsideAside({ lastNumber }: FreedRules): void {
    const outside = this.#sql
      .exec("SELECT slot FROM ready WHERE number > ? LIMIT ?", lastNumber, FREED_CHUNK_NUMBERS)
      .toArray();
    for (const { number, freedAt } of this.#takeSlots(outside)) this.setAside(number, freedAt);
  }

  #takeSlots(rows: readonly Row[]): FreedNumber[] {
    // Highest first, so that the row that moves into a freed slot is never one of those to be taken.
    const slots = rows.map(({ slot }) => integer(slot)).sort((one, other) => other - one);
    const count = this.countReady();
    return slots.map((slot, taken) => this.#takeSlot(slot, count - taken));
  }

  /** Removes the number in a slot, and moves the last row into that slot. */
  #takeSlot(slot: number, count: number): FreedNumber {
    const taken = firstRow(this.#sql, "DELETE FROM ready WHERE slot = ? RETURNING number, freed_at", slot);
    if (!taken) throw new Error("the slots of ready numbers have a gap");
    if (slot !== count) this.#sql.exec("UPDATE ready SET slot = ? WHERE slot = ?", slot, count);
    return toFreedNumber(taken);
  }
}

/** Numbers freed until this millisecond have rested. Without a delay all have, even if the clock jumped back. */
function restedBefore({ reuseAfterSeconds, now }: FreedRules): number {
  return reuseAfterSeconds === 0 ? Number.MAX_SAFE_INTEGER : now - reuseAfterSeconds * 1000;
}

/** A number freed after this millisecond was freed by a wrong clock. */
function wrongAfter({ reuseAfterSeconds, now }: FreedRules): number {
  return reuseAfterSeconds === 0 ? Number.MAX_SAFE_INTEGER : now;
}

function toFreedNumber({ number, freed_at: freedAt }: Row): FreedNumber {
  return { number: integer(number), freedAt: integer(freedAt) };
}

const RANDOM_BYTES = 6;
const RANDOM_VALUES = 256 ** RANDOM_BYTES;

/** A whole number from 0 to `limit - 1` (`limit` up to 2^48), each equally likely, from the platform's secure generator. */
function randomBelow(limit: number): number {
  // Values of the last, incomplete run of `limit` would favour small remainders, so they are drawn again.
  const ceiling = RANDOM_VALUES - (RANDOM_VALUES % limit);
  for (;;) {
    const bytes = crypto.getRandomValues(new Uint8Array(RANDOM_BYTES));
    const value = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
    if (value < ceiling) return value % limit;
  }
}
