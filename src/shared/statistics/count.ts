import {
  LARGE_APPLICATION_BADGES,
  LARGE_STATISTICS_MAX_AGE_SECONDS,
  LARGE_STATISTICS_REFRESH_SECONDS,
  MAX_STATISTICS_CHUNKS,
  MAX_STATISTICS_PAUSE_MILLISECONDS,
  STATISTICS_DAYS,
  STATISTICS_MAX_AGE_SECONDS,
  STATISTICS_PAUSE_FACTOR,
  STATISTICS_POLL_MILLISECONDS,
  STATISTICS_SAVE_MILLISECONDS,
} from "../limits.ts";
import type { Database } from "../storage/d1.ts";
import {
  type Claim,
  claimStatistics,
  failStatistics,
  findCounts,
  finishStatistics,
  leaveProgress,
  saveProgress,
} from "../storage/statistics.ts";
import { type CountedRows, readChunk } from "../storage/statistics-chunks.ts";
import { DAY_MILLISECONDS, isYounger } from "../time.ts";
import { addChunk, type Counts, noCounts } from "./counts.ts";
import type { CountedApplication } from "./view.ts";

/** What counting needs of the program that asks. */
export interface CountingTools {
  db: Database;
  /** Milliseconds. */
  now(): number;
  wait(milliseconds: number): Promise<unknown>;
}

const isLarge = ({ badgesByState }: Counts): boolean =>
  Object.values(badgesByState).reduce((sum, badges) => sum + badges, 0) > LARGE_APPLICATION_BADGES;

/** How long a call counts, and how long it waits while another one does. */
export interface Patience {
  countMilliseconds: number;
  waitMilliseconds: number;
  /** An application that is not large is counted anew if its last counts began before that, in milliseconds. */
  freshFrom?: number;
}

/** @param large seconds, of a large application */
const areYounger = (counts: Counts, now: number, large: number): boolean =>
  isYounger(counts.startedAt, now, 1000 * (isLarge(counts) ? large : STATISTICS_MAX_AGE_SECONDS));

/** Whether the counts may be shown (contract section 21). */
export const isCurrent = (counts: Counts, now: number): boolean =>
  areYounger(counts, now, LARGE_STATISTICS_MAX_AGE_SECONDS);

/** Whether it is time to count again. */
export const isDue = (counts: Counts, now: number): boolean =>
  !areYounger(counts, now, LARGE_STATISTICS_REFRESH_SECONDS);

/**
 * Counts that are not due to be counted again: those of D1, or counted now, unless another call does that already. What is not
 * finished is left to the next call.
 *
 * @returns null if there are none in that time, or counting failed a moment ago
 */
export async function countWithin(
  tools: CountingTools,
  application: CountedApplication,
  { countMilliseconds, waitMilliseconds, freshFrom = 0 }: Patience,
): Promise<Counts | null> {
  const { db, now, wait } = tools;
  const { applicationId } = application;
  const startedAt = now();
  const claim = { applicationId, id: crypto.randomUUID() };
  for (let waited = STATISTICS_POLL_MILLISECONDS; ; waited += STATISTICS_POLL_MILLISECONDS) {
    const { counts, retryAt } = await findCounts(db, applicationId);
    if (counts && !isDue(counts, now()) && (isLarge(counts) || counts.startedAt >= freshFrom)) return counts;
    if (retryAt > now()) return null;
    const progress = await claimStatistics(db, claim, counts, now());
    if (progress !== undefined) return countClaimed(tools, application, claim, progress, startedAt + countMilliseconds);
    if (waited > waitMilliseconds || now() >= startedAt + waitMilliseconds) return null;
    await wait(STATISTICS_POLL_MILLISECONDS);
  }
}

async function countClaimed(
  tools: CountingTools,
  application: CountedApplication,
  claim: Claim,
  progress: Counts | null,
  endAt: number,
): Promise<Counts | null> {
  const { db, now, wait } = tools;
  let savedAt = now();
  // What was begun long ago would be too old when it is finished.
  let counts = progress && !isDue(progress, savedAt) ? progress : noCounts(savedAt);
  const rows = rowsOf(application, counts.startedAt);
  try {
    for (let chunks = 0; counts.counting !== "nothing"; chunks++) {
      if (chunks === MAX_STATISTICS_CHUNKS || now() >= endAt) {
        await leaveProgress(db, claim, counts);
        return null;
      }
      const chunkAt = now();
      counts = addChunk(counts, await readChunk(db, rows, counts));
      const pause = STATISTICS_PAUSE_FACTOR * Math.max(0, now() - chunkAt);
      await wait(Math.min(pause, MAX_STATISTICS_PAUSE_MILLISECONDS));
      if (now() - savedAt < STATISTICS_SAVE_MILLISECONDS) continue;
      savedAt = now();
      if (!(await saveProgress(db, claim, counts, savedAt))) return null;
    }
    return (await finishStatistics(db, claim, counts)) ? counts : null;
  } catch (error) {
    // Best effort: without it the claim ends by itself.
    await failStatistics(db, claim, now()).catch(() => false);
    throw error;
  }
}

function rowsOf(
  { applicationId, firstNumber, lastNumber, reuseAfterSeconds }: CountedApplication,
  at: number,
): CountedRows {
  const today = at - (at % DAY_MILLISECONDS);
  return {
    ...{ applicationId, firstNumber, lastNumber },
    restedBefore: at - reuseAfterSeconds * 1000,
    daysFrom: today - (STATISTICS_DAYS - 1) * DAY_MILLISECONDS,
  };
}
