import {
  MAX_CACHED_CLIENT_ADDRESSES,
  RATE_LIMIT_WINDOW_SECONDS,
  REFUSED_CALLS_PER_MINUTE,
} from "../../shared/limits.ts";
import { BoundedCache } from "../bounded-cache.ts";
import { retryPlatform } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import { clientBlock } from "./client-address.ts";

/** What one client address does in one minute. */
interface Minute {
  index: number;
  refused: number;
  isOver: boolean;
  /** What D1 is being asked about at this moment, and by how many calls. */
  inDoubt: Map<string, number>;
}

/**
 * Calls refused for their credentials, by client address (contract section 7). The platform counts them for a location;
 * an isolate counts its own too, so that guessing costs D1 a bounded number of look-ups even when many guesses come at
 * once or the platform is permissive.
 */
export class RefusedCalls {
  readonly #minutes = new BoundedCache<Minute>(MAX_CACHED_CLIENT_ADDRESSES);

  /**
   * Asks D1 something whose result may refuse the call. Calls about the same subject count as one: the phones behind one
   * address may all come at once to an isolate that does not know their application.
   *
   * @param now milliseconds
   * @throws Refusal when the address is over the limit, or would be if every pending look-up ended in a refusal
   */
  async lookUp<Result>(
    clientAddress: string,
    now: number,
    subject: string,
    ask: () => Promise<Result>,
  ): Promise<Result> {
    const minute = this.#minuteOf(clientBlock(clientAddress), now);
    const { inDoubt } = minute;
    const asking = inDoubt.get(subject) ?? 0;
    const couldBeOver = asking === 0 && minute.refused + inDoubt.size > REFUSED_CALLS_PER_MINUTE;
    if (minute.isOver || couldBeOver) throw new Refusal("RATE_LIMITED");
    inDoubt.set(subject, asking + 1);
    try {
      return await ask();
    } finally {
      const others = (inDoubt.get(subject) ?? 1) - 1;
      if (others === 0) inDoubt.delete(subject);
      else inDoubt.set(subject, others);
    }
  }

  /**
   * Counts a refused call.
   *
   * @param now milliseconds
   * @returns whether the address is over the limit; for the rest of the minute it then stays so in this isolate
   */
  async count(clientAddress: string, now: number, limit: RateLimit): Promise<boolean> {
    const key = clientBlock(clientAddress);
    const minute = this.#minuteOf(key, now);
    if (minute.isOver) return true;
    minute.refused++;
    minute.isOver =
      minute.refused > REFUSED_CALLS_PER_MINUTE ||
      !(await retryPlatform("rate limit", () => limit.limit({ key }))).success ||
      // Another call of the address may have gone over meanwhile.
      minute.isOver;
    return minute.isOver;
  }

  #minuteOf(key: string, now: number): Minute {
    const index = Math.floor(now / (RATE_LIMIT_WINDOW_SECONDS * 1000));
    const known = this.#minutes.get(key);
    if (known?.index === index) return known;
    const minute: Minute = { index, refused: 0, isOver: false, inDoubt: new Map() };
    this.#minutes.set(key, minute);
    return minute;
  }
}
