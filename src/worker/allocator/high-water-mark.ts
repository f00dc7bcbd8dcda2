import { type HighWater, NO_BADGE_YET } from "../../shared/storage/high-water.ts";
import { firstRow, integer } from "./sql.ts";

/**
 * The highest position and change number that the object has written to D1. If D1's are lower, D1 was restored to an older
 * state (src/worker/storage/high-water.ts).
 */
export class HighWaterMark {
  readonly #sql: SqlStorage;
  #seen: HighWater | undefined;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  get seen(): HighWater {
    this.#seen ??= this.#read();
    return this.#seen;
  }

  note({ position, change }: HighWater): void {
    const { seen } = this;
    if (position <= seen.position && change <= seen.change) return;
    this.#seen = { position: Math.max(position, seen.position), change: Math.max(change, seen.change) };
    this.#sql.exec(
      "INSERT OR REPLACE INTO high_water (id, position, change) VALUES (1, ?, ?)",
      this.#seen.position,
      this.#seen.change,
    );
  }

  #read(): HighWater {
    const row = firstRow(this.#sql, "SELECT position, change FROM high_water");
    return row ? { position: integer(row.position), change: integer(row.change) } : NO_BADGE_YET;
  }
}
