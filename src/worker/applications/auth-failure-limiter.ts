import { MAX_CACHED_CLIENT_ADDRESSES } from "../../shared/limits/cache-limits.ts";
import { RATE_LIMIT_WINDOW_SECONDS } from "../../shared/limits/platform-limits.ts";
import { REFUSED_CALLS_PER_MINUTE } from "../../shared/limits/request-limits.ts";
import { ApiError } from "../api-error.ts";
import { LruCache } from "../lru-cache.ts";
import { retryPlatform } from "../platform.ts";
import { addressPrefix } from "./address-prefix.ts";

/** The calls of one client address in one minute. */
interface Minute {
  index: number;
  refused: number;
  isLimited: boolean;
  /** The subjects of pending D1 look-ups. */
  pending: Map<string, { calls: number }>;
}

/**
 * Counts calls refused for their credentials, by client address. The platform counts them per location. An isolate also
 * counts its own calls. This bounds the D1 look-ups for guesses, even if many guesses arrive at once or the platform
 * admits too many.
 */
export class AuthFailureLimiter {
  readonly #minutes = new LruCache<Minute>(MAX_CACHED_CLIENT_ADDRESSES);

  /**
   * Makes a look-up in D1 that may lead to a refusal. Concurrent calls about the same subject count as one: many phones
   * behind one address may call an isolate that has not loaded their application yet.
   *
   * @param now milliseconds
   * @throws ApiError when the address is over the limit, or would be if every pending look-up led to a refusal
   */
  async lookUp<Result>(
    clientAddress: string,
    now: number,
    subject: string,
    ask: () => Promise<Result>,
  ): Promise<Result> {
    const minute = this.#minuteOf(addressPrefix(clientAddress), now);
    const { pending } = minute;
    const known = pending.get(subject);
    const couldBeLimited = known === undefined && minute.refused + pending.size > REFUSED_CALLS_PER_MINUTE;
    if (minute.isLimited || couldBeLimited) throw new ApiError("RATE_LIMITED");
    const asking = known ?? { calls: 0 };
    pending.set(subject, asking);
    asking.calls++;
    try {
      return await ask();
    } finally {
      asking.calls--;
      if (asking.calls === 0) pending.delete(subject);
    }
  }

  /**
   * Counts a refused call.
   *
   * @param now milliseconds
   * @returns whether the address is over the limit; if so, it stays over in this isolate for the rest of the minute
   */
  async count(clientAddress: string, now: number, limit: RateLimit): Promise<boolean> {
    const key = addressPrefix(clientAddress);
    const minute = this.#minuteOf(key, now);
    if (minute.isLimited) return true;
    minute.refused++;
    minute.isLimited =
      minute.refused > REFUSED_CALLS_PER_MINUTE ||
      !(await retryPlatform("rate limit", () => limit.limit({ key }))).success ||
      // Another call from the address may have exceeded the limit meanwhile.
      minute.isLimited;
    return minute.isLimited;
  }

  #minuteOf(key: string, now: number): Minute {
    const index = Math.floor(now / (RATE_LIMIT_WINDOW_SECONDS * 1000));
    const known = this.#minutes.get(key);
    if (known?.index === index) return known;
    const minute: Minute = { index, refused: 0, isLimited: false, pending: new Map() };
    this.#minutes.set(key, minute);
    return minute;
  }
}
