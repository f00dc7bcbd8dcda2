import type { ApplicationId } from "../../../shared/identifiers.ts";
import {
  DENIAL_CACHE_MILLISECONDS,
  MAX_CACHED_APPLICATIONS,
  MAX_CACHED_STATUS_LISTS,
  STATUS_LIST_CACHE_SECONDS,
  STATUS_LIST_ROOM,
} from "../../../shared/limits.ts";
import { happenedWithin } from "../../../shared/time.ts";
import type { CachedResponse } from "../../edge-cache.ts";
import { LruCache } from "../../lru-cache.ts";
import { firstPositionOf, listOf } from "./list-index.ts";

/** What an isolate knows about status lists. */
export class StatusListCache {
  /** Compact JWSs, by URL. */
  readonly #cached = new LruCache<CachedResponse>(MAX_CACHED_STATUS_LISTS);
  /** The last position that an application has assigned, and when D1 said so. */
  readonly #lastPositions = new LruCache<{ position: number; askedAt: number }>(MAX_CACHED_APPLICATIONS);
  /** When the first list of an application that could be a guess was asked for, by application. */
  readonly #firstAskedAt = new LruCache<number>(MAX_CACHED_APPLICATIONS);

  /** @returns a list that is young enough to be sent */
  peek(uri: string, now: number): CachedResponse | undefined {
    const cached = this.#cached.get(uri);
    return happenedWithin(cached?.builtAt, now, STATUS_LIST_CACHE_SECONDS * 1000) ? cached : undefined;
  }

  remember(uri: string, list: CachedResponse): void {
    this.#cached.set(uri, list);
  }

  rememberLastPosition(applicationId: ApplicationId, position: number, askedAt: number): void {
    this.#lastPositions.set(applicationId, { position, askedAt });
  }

  /** The application's last list as far as is known: there is always a first one. */
  lastList(applicationId: ApplicationId): number {
    return listOf(this.#lastPositions.get(applicationId)?.position ?? 0);
  }

  /**
   * Whether this is the one call, in `STATUS_LIST_CACHE_SECONDS`, that may learn how many lists an application has although its
   * address is over its limit: a door that asks for a later list first is not a guesser.
   *
   * @param now milliseconds
   */
  mayLearnLastList(applicationId: ApplicationId, now: number): boolean {
    if (this.#lastPositions.get(applicationId) !== undefined) return false;
    if (happenedWithin(this.#firstAskedAt.get(applicationId), now, STATUS_LIST_CACHE_SECONDS * 1000)) return false;
    this.#firstAskedAt.set(applicationId, now);
    return true;
  }

  /**
   * Whether a list does not exist: it did not a moment ago, or there has been no time to issue the badges before it. So asking
   * for lists that do not exist costs D1 one query in all that time, whatever their numbers.
   */
  isMissing(applicationId: ApplicationId, list: number, now: number): boolean {
    const last = this.#lastPositions.get(applicationId);
    if (last === undefined || list <= listOf(last.position)) return false;
    const isFarAway = firstPositionOf(list) - last.position > STATUS_LIST_ROOM;
    const milliseconds = isFarAway ? STATUS_LIST_CACHE_SECONDS * 1000 : DENIAL_CACHE_MILLISECONDS;
    return happenedWithin(last.askedAt, now, milliseconds);
  }
}
