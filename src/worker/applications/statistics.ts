import type { ApplicationId } from "../../shared/identifiers.ts";
import {
  MAX_CACHED_STATISTICS,
  STATISTICS_COUNT_MILLISECONDS,
  STATISTICS_RETRY_SECONDS,
  STATISTICS_WAIT_MILLISECONDS,
} from "../../shared/limits.ts";
import { type CountingTools, countWithin, isCurrent, isDue } from "../../shared/statistics/count.ts";
import type { Counts } from "../../shared/statistics/counts.ts";
import {
  type CountedApplication,
  type ShownApplication,
  type Statistics,
  viewStatistics,
} from "../../shared/statistics/view.ts";
import { countLogins, findCounts } from "../../shared/storage/statistics.ts";
import { isYounger } from "../../shared/time.ts";
import { BoundedCache } from "../bounded-cache.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import { findSettings } from "../storage/settings.ts";

/** What an isolate knows about statistics, by application. */
export class CountedStatistics {
  readonly counted = new BoundedCache<{ application: ShownApplication; counts: Counts }>(MAX_CACHED_STATISTICS);
  /** When counting failed, in milliseconds. D1 remembers that too, unless it was D1 that failed. */
  readonly failedAt = new BoundedCache<number>(MAX_CACHED_STATISTICS);
}

/**
 * An application's statistics, as old as contract sections 19 and 21 allow. In the whole service one call at a time counts them; the
 * others wait for its result.
 *
 * @throws Unavailable when it is not there in time, or counting failed a moment ago
 */
export async function readStatistics(context: Context, applicationId: ApplicationId): Promise<Statistics> {
  const { statistics, db, now, defer } = context;
  const known = statistics.counted.get(applicationId);
  if (known && !isDue(known.counts, now())) return viewStatistics(known.application, known.counts);
  if (isYounger(statistics.failedAt.get(applicationId), now(), STATISTICS_RETRY_SECONDS * 1000)) {
    if (known && isCurrent(known.counts, now())) return viewStatistics(known.application, known.counts);
    throw new Unavailable("statistics", new Error("counting failed a moment ago"));
  }
  const settings = await findSettings(db, applicationId);
  if (!settings) throw new Refusal("INVALID_CREDENTIALS");
  const application = { ...settings, logins: await countLogins(db, applicationId, now()) };
  const { counts: last } = await findCounts(db, applicationId);
  const isShown = last !== null && isCurrent(last, now());
  if (isShown && !isDue(last, now())) return remember(context, application, last);
  const counting = count(context, application, isShown ? 0 : STATISTICS_WAIT_MILLISECONDS);
  // Goes on when the caller has its response, or hangs up.
  defer(counting.catch(() => null));
  if (isShown) return viewStatistics(application, last);
  const counts = await Promise.race([counting, scheduler.wait(STATISTICS_WAIT_MILLISECONDS).then(() => null)]);
  if (counts === null)
    throw new Unavailable("statistics", new Error("they are being counted, or that failed a moment ago"));
  return remember(context, application, counts);
}

async function count(
  { db, now, statistics }: Context,
  application: CountedApplication,
  waitMilliseconds: number,
): Promise<Counts | null> {
  const tools: CountingTools = { db, now, wait: (milliseconds) => scheduler.wait(milliseconds) };
  try {
    const patience = { countMilliseconds: STATISTICS_COUNT_MILLISECONDS, waitMilliseconds };
    return await countWithin(tools, application, patience);
  } catch (error) {
    statistics.failedAt.set(application.applicationId, now());
    log("error", { event: "statistics-failed", application: application.applicationId, error });
    throw error;
  }
}

function remember({ statistics }: Context, application: ShownApplication, counts: Counts): Statistics {
  statistics.counted.set(application.applicationId, { application, counts });
  return viewStatistics(application, counts);
}
