import type { ApplicationId } from "../../shared/identifiers.ts";
import {
  DENIAL_CACHE_MILLISECONDS,
  MAX_CACHED_APPLICATIONS,
  MAX_CACHED_STATUS_LISTS,
  STATUS_LIST_CACHE_SECONDS,
} from "../../shared/limits.ts";
import { BoundedCache } from "../bounded-cache.ts";
import { type EdgeCopy, isYoung } from "../edge-copies.ts";

/** The last status list of an application. */
export interface LastList {
  list: number;
  /** Whether it has so much room that the next one does not begin while a copy is young enough to be sent. */
  hasRoom: boolean;
}

/** What an isolate knows about status lists, by their URLs. */
export class StatusLists {
  /** Compact JWSs. */
  readonly copies = new BoundedCache<EdgeCopy>(MAX_CACHED_STATUS_LISTS);
  /** The request that is building a list. An entry is left behind when that request's caller hangs up. */
  readonly building = new BoundedCache<object>(MAX_CACHED_STATUS_LISTS);
  /** Each with the time when D1 was asked, by application ID. */
  readonly #lastLists = new BoundedCache<LastList & { askedAt: number }>(MAX_CACHED_APPLICATIONS);

  /** @returns the copy if it is young enough to be sent */
  recall(uri: string, now: number): EdgeCopy | undefined {
    const copy = this.copies.get(uri);
    return copy && isYoung(copy, now, STATUS_LIST_CACHE_SECONDS) ? copy : undefined;
  }

  /** @returns the number of the application's last list as far as is known: there is always a first one */
  lastList(applicationId: ApplicationId): number {
    return this.#lastLists.get(applicationId)?.list ?? 0;
  }

  rememberLastList(applicationId: ApplicationId, last: LastList, askedAt: number): void {
    this.#lastLists.set(applicationId, { ...last, askedAt });
  }

  /**
   * Whether a list does not exist: it did not a moment ago, or there has been no time to fill the one before it. Every door
   * asks for the list after the last at every refresh.
   */
  isMissing(applicationId: ApplicationId, list: number, now: number): boolean {
    const last = this.#lastLists.get(applicationId);
    if (last === undefined || list <= last.list) return false;
    const milliseconds = last.hasRoom ? STATUS_LIST_CACHE_SECONDS * 1000 : DENIAL_CACHE_MILLISECONDS;
    return Math.abs(now - last.askedAt) < milliseconds;
  }
}
