import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_CACHED_STATISTICS, STATISTICS_CACHE_SECONDS } from "../../shared/limits.ts";
import { countStatistics, type Statistics } from "../../shared/statistics.ts";
import { BoundedCache } from "../bounded-cache.ts";
import type { Context } from "../context.ts";
import { Refusal } from "../refusal.ts";
import { findSettings } from "../storage/settings.ts";

/**
 * Statistics by application. Counting reads all rows of an application, so an isolate caches the result for
 * `STATISTICS_CACHE_SECONDS`.
 */
export class CountedStatistics extends BoundedCache<{ statistics: Statistics; at: number }> {
  constructor() {
    super(MAX_CACHED_STATISTICS);
  }
}

export async function readStatistics(context: Context, applicationId: ApplicationId): Promise<Statistics> {
  const now = context.now();
  const known = context.statistics.get(applicationId);
  // A clock that jumped back makes an entry look new for ever: age counts in both directions.
  if (known && Math.abs(now - known.at) < STATISTICS_CACHE_SECONDS * 1000) return known.statistics;
  const settings = await findSettings(context.db, applicationId);
  if (!settings) throw new Refusal("INVALID_CREDENTIALS");
  const statistics = await countStatistics(context.db, settings, now);
  context.statistics.set(applicationId, { statistics, at: now });
  return statistics;
}
