import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_CACHED_APPLICATIONS } from "../../shared/limits/cache-limits.ts";
import { HOUR_MILLISECONDS } from "../../shared/time.ts";
import { LruCache } from "../lru-cache.ts";

/**
 * The clock hours in which an isolate has logged that an application's fresh numbers are used up. One line per hour is
 * enough.
 */
export class HourlyLimitLog {
  readonly #hours = new LruCache<number>(MAX_CACHED_APPLICATIONS);

  /** Whether this is the isolate's first call in the clock hour that got 429. @param now milliseconds */
  isFirst(id: ApplicationId, now: number): boolean {
    const hour = Math.floor(now / HOUR_MILLISECONDS);
    if (this.#hours.get(id) === hour) return false;
    this.#hours.set(id, hour);
    return true;
  }
}
