import { FREED_CHUNK_NUMBERS } from "../../shared/limits.ts";
import { randomBelow } from "./random.ts";
import { firstRow, integer, type Row } from "./sql.ts";

/** Which freed numbers may be handed out at a moment. */
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
 * Numbers that were leased and released, in the storage of an object. The next one is drawn at random at the moment of
 * taking, so whoever reserves and revokes numbers cannot choose the one that a stranger gets (contract section 5).
 *
 * A number is in one of three tables: `free` while it rests, `ready` once it may be drawn, `beyond` while it lies beyond
 * the application's range. `ready` has slots 1, 2, … without a gap, so a draw costs the same however many there are.
 */
export class FreedNumbers {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** @param freedAt milliseconds; it may lie back, when an invitation's end is noticed late */
  add(number: number, freedAt: number): void {
    this.#sql.exec("INSERT OR IGNORE INTO free (number, freed_at) VALUES (?, ?)", number, freedAt);
  }

  /** Keeps a number until the range covers it. */
  setAside(number: number, freedAt: number): void {
    this.#sql.exec("INSERT OR IGNORE INTO beyond (number, freed_at) VALUES (?, ?)", number, freedAt);
  }

  /**
   * Moves numbers to the table where they belong by now, a bounded number of them. Each lease does so: it moves far more
   * than one release adds, so the tables are up to date but for moments.
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
      // It was ready by a shorter reuse delay, or before the clock jumped back.
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

  /** Forgets those of the numbers that are freed: D1 knows them. */
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
      // Without a slot it gets the next one: SQLite's largest rowid and one more.
      this.#sql.exec("INSERT OR IGNORE INTO ready (number, freed_at) VALUES (?, ?)", number, freedAt);
    }
  }

  /** The delay counts anew from now, or a moment of a wrong clock would hold numbers back for years. */
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
    // The highest first: the row that moves into a slot is then never one that is to be taken, too.
    const slots = rows.map(({ slot }) => integer(slot)).sort((one, other) => other - one);
    const count = this.countReady();
    return slots.map((slot, taken) => this.#takeSlot(slot, count - taken));
  }

  /** Takes what is in a slot, and moves the last row into it. */
  #takeSlot(slot: number, count: number): FreedNumber {
    const taken = firstRow(this.#sql, "DELETE FROM ready WHERE slot = ? RETURNING number, freed_at", slot);
    if (!taken) throw new Error("the slots of ready numbers have a gap");
    if (slot !== count) this.#sql.exec("UPDATE ready SET slot = ? WHERE slot = ?", slot, count);
    return toFreedNumber(taken);
  }
}

/** Numbers freed by then have rested, in milliseconds. Without a delay the clock is not asked: it may have jumped back. */
function restedBefore({ reuseAfterSeconds, now }: FreedRules): number {
  return reuseAfterSeconds === 0 ? Number.MAX_SAFE_INTEGER : now - reuseAfterSeconds * 1000;
}

/** A number freed later than that was freed by a wrong clock. */
function wrongAfter({ reuseAfterSeconds, now }: FreedRules): number {
  return reuseAfterSeconds === 0 ? Number.MAX_SAFE_INTEGER : now;
}

function toFreedNumber({ number, freed_at: freedAt }: Row): FreedNumber {
  return { number: integer(number), freedAt: integer(freedAt) };
}
