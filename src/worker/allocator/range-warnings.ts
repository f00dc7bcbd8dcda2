import { RANGE_WARNING_PERCENTS } from "../../shared/limits.ts";
import type { NumberRange } from "./fresh-numbers.ts";
import { firstRow, integer } from "./sql.ts";

/**
 * Notices when a range fills up, once for each share of `RANGE_WARNING_PERCENTS`. A share counts as new again when there
 * were twice as many numbers left as at its warning, so a range that stays about there does not warn with each number.
 * Each length of a range has a state of its own: while a range grows, callers may know either length.
 */
export class RangeWarnings {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /**
   * Whether `note` could have anything to do. Fresh numbers only become fewer: while there are many, no warning was given.
   *
   * @param fresh numbers of the range that nobody had yet
   */
  isNear(range: NumberRange, fresh: number): boolean {
    return shareReached(range, fresh / 2) !== 0;
  }

  /**
   * @param left numbers that can be handed out now
   * @returns the share in percent that has just been used up, or null
   */
  note(range: NumberRange, left: number): number | null {
    const { last } = range;
    const reached = shareReached(range, left);
    const nearly = shareReached(range, left / 2);
    const row = firstRow(this.#sql, "SELECT percent FROM range_warning WHERE last = ?", last);
    const warned = row ? integer(row.percent) : 0;
    const now = Math.max(reached, Math.min(warned, nearly));
    if (now !== warned) {
      this.#sql.exec("INSERT OR REPLACE INTO range_warning (last, percent) VALUES (?, ?)", last, now);
    }
    return reached > warned ? reached : null;
  }
}

/** The largest share of the range that is used, in percent, or 0. */
function shareReached({ first, last }: NumberRange, left: number): number {
  return RANGE_WARNING_PERCENTS.find((percent) => left <= ((last - first + 1) * (100 - percent)) / 100) ?? 0;
}
