import type { ApplicationId } from "../../shared/identifiers.ts";
import {
  APPLICATION_CACHE_SECONDS,
  KNOWN_APPLICATIONS_POLL_MILLISECONDS,
  PLATFORM_DEADLINE_MILLISECONDS,
} from "../../shared/limits.ts";
import { happenedWithin } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { listApplicationIds } from "../storage/applications.ts";

/** The IDs of one home. Times are milliseconds. */
interface KnownIds {
  ids: ReadonlySet<string>;
  /** When they were read; null: never. */
  readAt: number | null;
  /** When the reading that is under way began; null: none is. */
  readingSince: number | null;
}

type Deps = Pick<Context, "home" | "db" | "now">;

/**
 * Which application IDs exist, by home. It tells doors and phones behind an address that guesses from the guesses, without a look-up
 * for each: the IDs are read together, at most once in `APPLICATION_CACHE_SECONDS`, and only when an address is over its limit.
 */
export class KnownApplications {
  readonly #homes = new Map<number, KnownIds>();

  /**
   * Whether there is an application of this ID. An application that was made since the IDs were read is not known yet.
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

/** A reading whose invocation was ended by the platform never finishes. */
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
    known.ids = new Set(await listApplicationIds(db));
    known.readAt = beganAt;
  } finally {
    known.readingSince = null;
  }
}
