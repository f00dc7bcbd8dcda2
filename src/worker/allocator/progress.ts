import type { HighWater } from "../../shared/storage/high-water.ts";
import { firstRow, integer } from "./sql.ts";

/**
 * How far the object's writes to D1 have come, in one row, so that a group of badges writes one row besides its leases:
 *
 * - the highest position and change number written; if D1's are lower, D1 was restored to an older state
 *   (src/shared/storage/high-water.ts);
 * - the last lease that is confirmed with its group (ledger-tables.ts).
 */
export class Progress {
  readonly #sql: SqlStorage;
  #seen: HighWater | undefined;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  get seen(): HighWater {
    this.#seen ??= this.#read();
    return this.#seen;
  }

  /** @param confirmedThrough ID of the last lease that is confirmed with its group; 0: as before */
  note({ position, change }: HighWater, confirmedThrough = 0): void {
    const { seen } = this;
    if (position <= seen.position && change <= seen.change && confirmedThrough === 0) return;
    this.#seen = { position: Math.max(position, seen.position), change: Math.max(change, seen.change) };
    this.#sql.exec(
      "UPDATE progress SET position = ?, change = ?, confirmed_through = max(confirmed_through, ?)",
      this.#seen.position,
      this.#seen.change,
      confirmedThrough,
    );
  }

  /** `high_water` is where earlier releases note the numbers. */
  #read(): HighWater {
    const row = firstRow(
      this.#sql,
      `SELECT max(position) AS position, max(change) AS change
       FROM (SELECT position, change FROM progress UNION ALL SELECT position, change FROM high_water)`,
    );
    return { position: integer(row?.position), change: integer(row?.change) };
  }
}
