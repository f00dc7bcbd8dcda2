import type { ApplicationId } from "../../shared/identifiers.ts";
import {
  APPLICATION_CACHE_SECONDS,
  KNOWN_APPLICATIONS_POLL_MILLISECONDS,
  MAX_KNOWN_APPLICATIONS,
} from "../../shared/limits/cache-limits.ts";
import { PLATFORM_DEADLINE_MILLISECONDS } from "../../shared/limits/platform-limits.ts";
import { happenedWithin } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { listApplicationIds } from "../storage/applications.ts";

/** The IDs of one home. Times are milliseconds. */
interface KnownIds {
  ids: ReadonlySet<string>;
  /** Time of the last read; null before the first one. */
  readAt: number | null;
  /** Start of the running read; null if none is running. */
  readingSince: number | null;
}

type Deps = Pick<Context, "home" | "db" | "now">;

/**
 * The existing application IDs by home. They let the service recognize doors and phones that share an address with a
 * guesser, without a look-up for each. The IDs are read together, at most once in `APPLICATION_CACHE_SECONDS`, and only
 * if an address is over its limit.
 */
export class KnownApplications {
  readonly #homes = new Map<number, KnownIds>();

  /**
   * Whether an application with this ID exists. An application that was made since the last read is not known yet.
   *
   * @throws Unavailable
   */
  async has(deps: Deps, id: ApplicationId): Promise<boolean> {
    const known = this.#homes.get(deps.home) ?? { ids: new Set<string>(), readAt: null, readingSince: null };
    this.#homes.set(deps.home, known);
    if (known.ids.has(id)) return true;
    if (isUnderWay(known, deps.now())) await untilRead(deps, known);
    else if (!happenedWithin(known.readAt, deps.now(), APPLICATION_CACHE_SECONDS * 1000)) await read(deps, known);
    return known.ids.has(id);
  }
}

/** A read never finishes if the platform has ended its invocation. */
const isUnderWay = ({ readingSince }: KnownIds, now: number): boolean =>
  happenedWithin(readingSince, now, PLATFORM_DEADLINE_MILLISECONDS);

/** Polls: a request cannot await another's I/O. */
async function untilRead({ now }: Deps, known: KnownIds): Promise<void> {
  const awaited = known.readingSince;
  while (known.readingSince === awaited && isUnderWay(known, now())) {
    await scheduler.wait(KNOWN_APPLICATIONS_POLL_MILLISECONDS);
  }
}

async function read({ db, now }: Deps, known: KnownIds): Promise<void> {
  const beganAt = now();
  known.readingSince = beganAt;
  try {
    known.ids = new Set(await listApplicationIds(db, MAX_KNOWN_APPLICATIONS));
    known.readAt = beganAt;
  } finally {
    known.readingSince = null;
  }
}
