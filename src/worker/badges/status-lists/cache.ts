import type { ApplicationId } from "../../../shared/identifiers.ts";
import { DENIAL_CACHE_MILLISECONDS, MAX_CACHED_APPLICATIONS } from "../../../shared/limits/cache-limits.ts";
import {
  DISTANT_LIST_ORDINALS,
  MAX_CACHED_STATUS_LISTS,
  STATUS_LIST_CACHE_SECONDS,
} from "../../../shared/limits/status-list-limits.ts";
import { happenedWithin } from "../../../shared/time.ts";
import type { CachedResponse } from "../../edge-cache.ts";
import { LruCache } from "../../lru-cache.ts";
import { firstOrdinalOf, listOf } from "./list-index.ts";

/** An isolate's cache of status lists. */
export class StatusListCache {
  /** Compact JWSs, by URL. */
  readonly #cached = new LruCache<CachedResponse>(MAX_CACHED_STATUS_LISTS);
  /** The last ordinal that an application has assigned, and when D1 was queried. */
  readonly #lastOrdinals = new LruCache<{ ordinal: number; askedAt: number }>(MAX_CACHED_APPLICATIONS);
  /** Times of the first request for a list that could be a guess, by application. */
  readonly #firstAskedAt = new LruCache<number>(MAX_CACHED_APPLICATIONS);

  /** @returns a list that may still be sent */
  peek(uri: string, now: number): CachedResponse | undefined {
    const cached = this.#cached.get(uri);
    return happenedWithin(cached?.builtAt, now, STATUS_LIST_CACHE_SECONDS * 1000) ? cached : undefined;
  }

  remember(uri: string, list: CachedResponse): void {
    this.#cached.set(uri, list);
  }

  rememberLastOrdinal(applicationId: ApplicationId, ordinal: number, askedAt: number): void {
    this.#lastOrdinals.set(applicationId, { ordinal, askedAt });
  }

  /** The application's last known list. The first list always exists. */
  lastList(applicationId: ApplicationId): number {
    return listOf(this.#lastOrdinals.get(applicationId)?.ordinal ?? 0);
  }

  /**
   * Whether this call may learn the number of an application's lists although its address is over the limit. One call
   * in `STATUS_LIST_CACHE_SECONDS` may, because a door may request a later list first without guessing.
   *
   * @param now milliseconds
   */
  mayLearnLastList(applicationId: ApplicationId, now: number): boolean {
    if (this.#lastOrdinals.get(applicationId) !== undefined) return false;
    if (happenedWithin(this.#firstAskedAt.get(applicationId), now, STATUS_LIST_CACHE_SECONDS * 1000)) return false;
    this.#firstAskedAt.set(applicationId, now);
    return true;
  }

  /**
   * True while the list cannot exist yet: it did not exist at the last query, and there was no time since to issue the
   * badges before it. So all requests for missing lists in that time cost D1 one query.
   */
  isMissing(applicationId: ApplicationId, list: number, now: number): boolean {
    const last = this.#lastOrdinals.get(applicationId);
    if (last === undefined || list <= listOf(last.ordinal)) return false;
    const isFarAway = firstOrdinalOf(list) - last.ordinal > DISTANT_LIST_ORDINALS;
    const milliseconds = isFarAway ? STATUS_LIST_CACHE_SECONDS * 1000 : DENIAL_CACHE_MILLISECONDS;
    return happenedWithin(last.askedAt, now, milliseconds);
  }
}
