import type { ApplicationId } from "../../shared/identifiers.ts";
import {
  CACHE_DEADLINE_MILLISECONDS,
  DENIAL_CACHE_MILLISECONDS,
  MAX_CACHED_APPLICATIONS,
  MAX_CACHED_STATUS_LISTS,
  STATUS_LIST_CACHE_SECONDS,
} from "../../shared/limits.ts";
import { BoundedCache } from "../bounded-cache.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { withDeadline } from "../platform.ts";

/** A built status list. Every copy keeps the time when it was built, and its age counts from then. */
export interface ListCopy {
  /** Compact JWS. */
  jwt: string;
  /** Milliseconds. */
  builtAt: number;
}

/** What an isolate knows about status lists, by their URLs. */
export class StatusLists {
  readonly copies = new BoundedCache<ListCopy>(MAX_CACHED_STATUS_LISTS);
  /** The request that is building a list. An entry is left behind when that request's caller hangs up. */
  readonly building = new BoundedCache<object>(MAX_CACHED_STATUS_LISTS);
  /** Number of the last list and when D1 was asked, by application ID. */
  readonly #lastLists = new BoundedCache<{ list: number; askedAt: number }>(MAX_CACHED_APPLICATIONS);

  /** @returns the copy if it is young enough to be sent */
  recall(uri: string, now: number): ListCopy | undefined {
    const copy = this.copies.get(uri);
    return copy && isYoung(copy.builtAt, now) ? copy : undefined;
  }

  /** @returns the number of the application's last list as far as is known: there is always a first one */
  lastList(applicationId: ApplicationId): number {
    return this.#lastLists.get(applicationId)?.list ?? 0;
  }

  rememberLastList(applicationId: ApplicationId, list: number, askedAt: number): void {
    this.#lastLists.set(applicationId, { list, askedAt });
  }

  /** Whether a list did not exist a moment ago. Every door asks for the list after the last, at every turn. */
  isMissing(applicationId: ApplicationId, list: number, now: number): boolean {
    const last = this.#lastLists.get(applicationId);
    return last !== undefined && list > last.list && Math.abs(now - last.askedAt) < DENIAL_CACHE_MILLISECONDS;
  }
}

/** Age counts in both directions, so that a clock that jumped back does not keep a copy alive for ever. */
const isYoung = (builtAt: number, now: number): boolean => Math.abs(now - builtAt) < STATUS_LIST_CACHE_SECONDS * 1000;

const BUILT_AT = "built-at";

/** The copy of this data centre (Workers: Cache API). A cache that fails counts as empty. */
export async function findShared({ edgeCache, now }: Context, uri: string): Promise<ListCopy | undefined> {
  try {
    return await withDeadline("cache", CACHE_DEADLINE_MILLISECONDS, async () => {
      const response = await edgeCache.match(uri);
      if (!response) return undefined;
      const builtAt = Number(response.headers.get(BUILT_AT));
      const jwt = await response.text();
      return isYoung(builtAt, now()) ? { jwt, builtAt } : undefined;
    });
  } catch (error) {
    log("warn", { event: "status-list-cache-failed", error });
    return undefined;
  }
}

/** Copies a list to the cache of this data centre, after the response. */
export function share({ edgeCache, defer }: Context, uri: string, { jwt, builtAt }: ListCopy): void {
  const headers = { "Cache-Control": `max-age=${STATUS_LIST_CACHE_SECONDS}`, [BUILT_AT]: String(builtAt) };
  const put = () => edgeCache.put(uri, new Response(jwt, { headers }));
  defer(
    withDeadline("cache", CACHE_DEADLINE_MILLISECONDS, put).catch((error) =>
      log("warn", { event: "status-list-cache-failed", error }),
    ),
  );
}
