import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_CACHED_APPLICATIONS } from "../../shared/limits/cache-limits.ts";
import { OBSERVED_WRITE_MILLISECONDS } from "../../shared/limits/user-token-limits.ts";
import type { Statistics } from "../../shared/statistics.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { LruCache } from "../lru-cache.ts";
import { addObservedLogins } from "../storage/observed-logins.ts";

type Deps = Pick<Context, "db" | "now" | "defer">;

interface Pending {
  counts: Statistics["logins"];
  /** When the invocation that writes them next began to wait, in milliseconds; null: none does. */
  waitsSince: number | null;
}

/** After this time the platform must have ended the invocation, so another one writes. */
const MAX_WAIT_MILLISECONDS = 4 * OBSERVED_WRITE_MILLISECONDS;

const none = (): Statistics["logins"] => ({ withToken: 0, withoutToken: 0, withWrongToken: 0 });

/**
 * Counts logins of applications whose tokens are only observed. An isolate adds up logins and writes the sums now and
 * then, after a response. Sums that are not written when the isolate ends are lost.
 */
export class LoginCounter {
  readonly #pending = new LruCache<Pending>(MAX_CACHED_APPLICATIONS);

  count(deps: Deps, applicationId: ApplicationId, kind: keyof Statistics["logins"]): void {
    const pending = this.#pending.get(applicationId) ?? { counts: none(), waitsSince: null };
    this.#pending.set(applicationId, pending);
    pending.counts[kind]++;
    const now = deps.now();
    if (pending.waitsSince !== null && now - pending.waitsSince < MAX_WAIT_MILLISECONDS) return;
    pending.waitsSince = now;
    deps.defer(writeSoon(deps, applicationId, pending));
  }
}

async function writeSoon({ db, now }: Deps, applicationId: ApplicationId, pending: Pending): Promise<void> {
  try {
    await scheduler.wait(OBSERVED_WRITE_MILLISECONDS);
    const counts = pending.counts;
    pending.counts = none();
    pending.waitsSince = null;
    await addObservedLogins(db, applicationId, counts, now());
  } catch (error) {
    log("warn", { event: "observed-logins-not-counted", application: applicationId, error });
  }
}
