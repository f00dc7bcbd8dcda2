import { type CompactVerifyGetKey, createLocalJWKSet } from "jose";
import { UNAVAILABLE_RETRY_SECONDS } from "../../shared/limits/platform-limits.ts";
import {
  ISSUER_DEADLINE_MILLISECONDS,
  ISSUER_KEYS_LIFETIME_SECONDS,
  ISSUER_KEYS_REFRESH_SECONDS,
  ISSUER_POLL_MILLISECONDS,
  ISSUER_REFETCH_SECONDS,
  MAX_CACHED_ISSUERS,
} from "../../shared/limits/user-token-limits.ts";
import { ProviderError } from "../../shared/openid/fetch-json.ts";
import { fetchVerificationKeys } from "../../shared/openid/provider.ts";
import { happenedWithin } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { LruCache } from "../lru-cache.ts";

/** The keys of one fetch. */
export interface KnownKeys {
  find: CompactVerifyGetKey;
  /** When the fetch began, in milliseconds. */
  fetchedAt: number;
}

/** An isolate's state about one issuer. Times are milliseconds. */
interface Issuer {
  known: KnownKeys | null;
  /** When the last fetch failed; null if it succeeded. */
  failedAt: number | null;
  /** When keys were last fetched for an unknown key ID. */
  unknownKeyAt: number | null;
  /** The running fetch. */
  fetch: { begunAt: number } | null;
}

type Deps = Pick<Context, "now" | "defer" | "isLocal">;

/**
 * Keys of OpenID providers, by issuer (contract section 22). One fetch serves all callers that wait for it. They poll,
 * because a promise cannot cross requests. While older keys can be used, only the caller that fetches waits.
 */
export class IssuerKeys {
  readonly #issuers = new LruCache<Issuer>(MAX_CACHED_ISSUERS);

  /** @returns the issuer's keys; null if none are known and they cannot be fetched */
  async find(deps: Deps, url: string): Promise<KnownKeys | null> {
    const issuer = this.#issuer(url);
    const now = deps.now();
    if (happenedWithin(issuer.known?.fetchedAt, now, ISSUER_KEYS_REFRESH_SECONDS * 1000)) return issuer.known;
    const usable = usableKeys(issuer, now);
    const pauseSeconds = usable === null ? UNAVAILABLE_RETRY_SECONDS : ISSUER_REFETCH_SECONDS;
    if (isUnderWay(issuer, now)) {
      if (usable !== null) return usable;
      await untilFetched(deps, issuer);
    } else if (!happenedWithin(issuer.failedAt, now, pauseSeconds * 1000)) {
      await fetchKeys(deps, url, issuer);
    }
    return usableKeys(issuer, deps.now());
  }

  /**
   * Keys for a token with an unknown key, since the issuer may have a new one. Made-up key IDs cause at most one fetch
   * a minute.
   *
   * @returns null if there are no other keys
   */
  async findOthers(deps: Deps, url: string, seen: KnownKeys): Promise<KnownKeys | null> {
    const issuer = this.#issuer(url);
    const now = deps.now();
    if (issuer.known === seen) {
      if (isUnderWay(issuer, now)) {
        await untilFetched(deps, issuer);
      } else if (!happenedWithin(issuer.unknownKeyAt, now, ISSUER_REFETCH_SECONDS * 1000)) {
        issuer.unknownKeyAt = now;
        await fetchKeys(deps, url, issuer);
      }
    }
    return issuer.known === seen ? null : issuer.known;
  }

  #issuer(url: string): Issuer {
    const known = this.#issuers.get(url);
    if (known) return known;
    const issuer: Issuer = { known: null, failedAt: null, unknownKeyAt: null, fetch: null };
    this.#issuers.set(url, issuer);
    return issuer;
  }
}

const usableKeys = ({ known }: Issuer, now: number): KnownKeys | null =>
  happenedWithin(known?.fetchedAt, now, ISSUER_KEYS_LIFETIME_SECONDS * 1000) ? known : null;

/** Times out: a fetch never ends if the platform has ended its invocation. */
const isUnderWay = ({ fetch }: Issuer, now: number): boolean =>
  happenedWithin(fetch?.begunAt, now, 2 * ISSUER_DEADLINE_MILLISECONDS);

async function untilFetched({ now }: Deps, issuer: Issuer): Promise<void> {
  const awaited = issuer.fetch;
  while (awaited !== null && issuer.fetch === awaited && isUnderWay(issuer, now())) {
    await scheduler.wait(ISSUER_POLL_MILLISECONDS);
  }
}

/** Fetches the keys, or records the failure. */
async function fetchKeys({ now, defer, isLocal }: Deps, url: string, issuer: Issuer): Promise<void> {
  const begunAt = now();
  const fetch = { begunAt };
  issuer.fetch = fetch;
  const work = async () => {
    try {
      const rules = { local: isLocal, signal: AbortSignal.timeout(ISSUER_DEADLINE_MILLISECONDS) };
      const { keys, leftOut } = await fetchVerificationKeys(url, rules);
      if (leftOut > 0) log("warn", { event: "issuer-keys-left-out", issuer: url, used: keys.length, leftOut });
      issuer.known = { find: createLocalJWKSet({ keys }), fetchedAt: begunAt };
      issuer.failedAt = null;
    } catch (error) {
      issuer.failedAt = now();
      const { fault, url: failed, detail } = error instanceof ProviderError ? error : {};
      // The issuer was reached, and has withdrawn every key.
      if (fault === "no-usable-key") issuer.known = null;
      log("warn", { event: "issuer-keys-failed", issuer: url, fault, url: failed, detail, error });
    } finally {
      if (issuer.fetch === fetch) issuer.fetch = null;
    }
  };
  const done = work();
  // Continues when the caller hangs up, because other callers wait for it.
  defer(done);
  await done;
}
