import { RANGE_WARNING_PERCENTS } from "../../shared/limits.ts";
import type { NumberRange } from "../../shared/number-range.ts";
import { firstRow, integer } from "./sql.ts";

/**
 * Warns when a range fills up, once for each share in `RANGE_WARNING_PERCENTS`. A share can be warned of again once twice as
 * many numbers are left as at its warning, so a range that hovers around a share does not warn at every number. The state is
 * kept per range end, because callers may know either length while a range is being extended.
 */
export class RangeWarnings {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /**
   * Whether `note` could have anything to do. Fresh numbers only become fewer: while there are many, no warning is due.
   *
   * @param fresh how many numbers of the range were never leased
   */
  isNear(range: NumberRange, fresh: number): boolean {
    return shareReached(range, fresh / 2) !== 0;
  }

  /**
   * @param left how many numbers can be leased now
   * @returns the share in percent that has just been reached, or null
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
