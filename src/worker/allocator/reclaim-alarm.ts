import { LEASE_RECLAIM_SECONDS, MIN_ALARM_SECONDS } from "../../shared/limits.ts";
import type { Ledger } from "./ledger.ts";

/** The object's alarm, at which it settles unconfirmed leases. It is set for as long as there is such a lease. */
export class ReclaimAlarm {
  readonly #storage: DurableObjectStorage;
  readonly #ledger: Ledger;
  #isSet = false;

  constructor(storage: DurableObjectStorage, ledger: Ledger) {
    this.#storage = storage;
    this.#ledger = ledger;
  }

  /** Before a lease is written to D1: sets the alarm unless it is set. */
  async ensure(): Promise<void> {
    if (this.#isSet) return;
    const alarm = await this.#storage.getAlarm();
    // An alarm further ahead was set by a wrong clock.
    if (alarm === null || alarm > Date.now() + LEASE_RECLAIM_SECONDS * 1000) await this.#set();
    this.#isSet = true;
  }

  /** After the alarm: sets the next one, if any lease is still unconfirmed. */
  async renew(): Promise<void> {
    this.#isSet = this.#ledger.finishScan();
    if (this.#isSet) await this.#set();
  }

  /** Sets the alarm to when the oldest unconfirmed lease can be settled. */
  #set(): Promise<void> {
    const now = Date.now();
    const oldest = Math.min(this.#ledger.oldestUnconfirmed() ?? now, now);
    const at = Math.max(oldest + LEASE_RECLAIM_SECONDS * 1000, now + MIN_ALARM_SECONDS * 1000);
    return this.#storage.setAlarm(at);
  }
}
