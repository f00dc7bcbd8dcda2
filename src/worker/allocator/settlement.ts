import { LEASE_SETTLE_SECONDS } from "../../shared/limits.ts";
import type { Database } from "../storage/database.ts";
import { settleUnconfirmed } from "./comparison.ts";
import type { Ledger } from "./ledger.ts";

/**
 * Settles old unconfirmed leases before a range counts as exhausted. Concurrent requests share one run, and the next run
 * waits until another lease can be old enough.
 */
export class Settlement {
  readonly #ledger: Ledger;
  readonly #openDatabase: () => Database;
  #running: Promise<boolean> | null = null;
  /** Milliseconds. */
  #lastRunAt = Number.POSITIVE_INFINITY;
  #nextRunAt = Number.NEGATIVE_INFINITY;

  constructor(ledger: Ledger, openDatabase: () => Database) {
    this.#ledger = ledger;
    this.#openDatabase = openDatabase;
  }

  /**
   * @returns whether a number was freed
   * @throws Unavailable when D1 fails or does not respond in time
   */
  async settleOldLeases(): Promise<boolean> {
    const now = Date.now();
    // A clock that jumped back must not delay the next run.
    const isDue = now >= this.#nextRunAt || now < this.#lastRunAt;
    if (!isDue && !this.#running) return false;
    this.#running ??= this.#run(now).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #run(now: number): Promise<boolean> {
    const age = LEASE_SETTLE_SECONDS * 1000;
    const freed = await settleUnconfirmed(this.#openDatabase(), this.#ledger, now - age);
    this.#lastRunAt = now;
    this.#nextRunAt = Math.min(this.#ledger.oldestUnconfirmed() ?? now, now) + age;
    return freed > 0;
  }
}
