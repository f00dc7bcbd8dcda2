import { eventIdPrefix } from "../shared/identifiers.ts";
import { RETENTION_OLDEST_ROWS, SWEEP_CHUNK_ROWS, UNDELIVERED_RETENTION_FACTOR } from "../shared/limits.ts";
import type { Context } from "./context.ts";
import {
  deleteChunk,
  deleteOldest,
  findApplications,
  type KeyRange,
  oldEvents,
  oldInvitations,
  type PurgeRule,
} from "./storage/retention.ts";

/**
 * Deletes old events and invitations (contract section 18). Every sweep scans the oldest rows of each application, where due
 * rows nearly always are. But rows that are kept may come before them, and reading all of those every minute would cost
 * more the longer the service runs. So the other rows are scanned once a day: rows made on the same day are scanned in the
 * same minute, the number of that day modulo 1,440.
 */

interface Deleted {
  deleted: number;
  isFinished: boolean;
}

/** Scans one chunk at each call. */
type Purge = (context: Context) => Promise<Deleted>;

const DAY_MILLISECONDS = 24 * 3600 * 1000;
const MINUTE_MILLISECONDS = 60 * 1000;
const MINUTES_OF_A_DAY = 1440;
/** The year of release 1.0: nothing is older. */
const FIRST_DAY = Date.UTC(2026, 0, 1) / DAY_MILLISECONDS;

export const createEventPurge = (): Purge =>
  createPurge(
    ({ retention, now }) => {
      const { eventDays } = retention();
      if (eventDays === null) throw new Error("EVENT_RETENTION_DAYS is not a number of days");
      const madeBefore = (days: number) => eventIdPrefix(Math.max(0, now() - Math.round(days * DAY_MILLISECONDS)));
      const undelivered = madeBefore(eventDays * UNDELIVERED_RETENTION_FACTOR);
      return oldEvents({ delivered: madeBefore(eventDays), undelivered });
    },
    (milliseconds) => eventIdPrefix(milliseconds),
  );

export const createInvitationPurge = (): Purge =>
  createPurge(
    ({ retention, now }) => {
      const { invitationDays } = retention();
      if (invitationDays === null) throw new Error("INVITATION_RETENTION_DAYS is not a number of days");
      return oldInvitations(now() - Math.round(invitationDays * DAY_MILLISECONDS));
    },
    (milliseconds) => milliseconds,
  );

/** @param keyAt the smallest key of rows made at a time in milliseconds */
function createPurge(ruleAt: (context: Context) => PurgeRule, keyAt: (milliseconds: number) => string | number): Purge {
  let ranges: KeyRange[] | undefined;
  let isScanningOldest = true;
  return async (context) => {
    const rule = ruleAt(context);
    if (isScanningOldest) {
      const deleted = await deleteOldest(context.db, rule, RETENTION_OLDEST_ROWS);
      isScanningOldest = deleted > 0;
      return { deleted, isFinished: false };
    }
    ranges ??= await findRanges(context, rule, keyAt);
    const range = ranges.shift();
    if (!range) return { deleted: 0, isFinished: true };
    const { deleted, rest } = await deleteChunk(context.db, rule, range, SWEEP_CHUNK_ROWS);
    if (rest) ranges.unshift(rest);
    return { deleted, isFinished: ranges.length === 0 };
  };
}

/** In random order, each day from a random time on, so that sweeps that cannot finish skip different rows each time. */
async function findRanges(
  { db, now }: Context,
  rule: PurgeRule,
  keyAt: (milliseconds: number) => string | number,
): Promise<KeyRange[]> {
  const minute = Math.floor(now() / MINUTE_MILLISECONDS) % MINUTES_OF_A_DAY;
  const ranges: KeyRange[] = [];
  const firstDay = FIRST_DAY + ((((minute - FIRST_DAY) % MINUTES_OF_A_DAY) + MINUTES_OF_A_DAY) % MINUTES_OF_A_DAY);
  for (let day = firstDay; day * DAY_MILLISECONDS < now(); day += MINUTES_OF_A_DAY) {
    const [start, end] = [keyAt(day * DAY_MILLISECONDS), keyAt((day + 1) * DAY_MILLISECONDS)];
    if (start >= rule.before) break;
    const to = end < rule.before ? end : rule.before;
    const middle = keyAt(day * DAY_MILLISECONDS + Math.floor(Math.random() * DAY_MILLISECONDS));
    for (const applicationId of await findApplications(db, rule, { from: start, to })) {
      if (middle < to) ranges.push({ applicationId, from: middle, to });
      ranges.push({ applicationId, from: start, to: middle < to ? middle : to });
    }
  }
  return ranges
    .map((range) => ({ range, order: Math.random() }))
    .sort((one, other) => one.order - other.order)
    .map(({ range }) => range);
}
