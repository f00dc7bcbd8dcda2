import {
  HEALTH_CACHE_MILLISECONDS,
  HEALTH_DEADLINE_MILLISECONDS,
  HEALTH_POLL_MILLISECONDS,
} from "../shared/limits/platform-limits.ts";
import { happenedWithin } from "../shared/time.ts";

interface Check {
  /** Null while D1 is being asked. */
  isFine: boolean | null;
}

/**
 * The last result of this isolate's health check. The check needs no credentials, so it queries D1 at most once a
 * second (contract section 7).
 */
export class DatabaseHealth {
  #askedAt = Number.NEGATIVE_INFINITY;
  #latest: Check = { isFine: false };

  /**
   * Whether D1 has responded within the last second.
   *
   * @param now milliseconds
   * @param ask throws if D1 does not respond in time
   */
  async check(now: number, ask: () => Promise<unknown>): Promise<boolean> {
    if (happenedWithin(this.#askedAt, now, HEALTH_CACHE_MILLISECONDS)) return outcomeOf(this.#latest);
    const latest: Check = { isFine: null };
    this.#askedAt = now;
    this.#latest = latest;
    try {
      await ask();
      latest.isFine = true;
    } catch (error) {
      latest.isFine = false;
      throw error;
    }
    return true;
  }
}

/** Polls: a request cannot await another's I/O, and the other request may end without a result. */
async function outcomeOf(check: Readonly<Check>): Promise<boolean> {
  for (let waited = 0; waited < HEALTH_DEADLINE_MILLISECONDS; waited += HEALTH_POLL_MILLISECONDS) {
    if (check.isFine !== null) return check.isFine;
    await scheduler.wait(HEALTH_POLL_MILLISECONDS);
  }
  return false;
}
