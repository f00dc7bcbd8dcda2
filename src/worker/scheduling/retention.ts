import { historyId } from "../../shared/history.ts";
import { eventIdPrefix } from "../../shared/identifiers.ts";
import { PURGE_CHUNK_ROWS, UNDELIVERED_RETENTION_FACTOR } from "../../shared/limits.ts";
import { DAY_MILLISECONDS } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { oldEvents, oldHistory, type PurgeRule, purgeChunk } from "../storage/retention.ts";

/**
 * Deletes old rows (contract section 18). Each minute scans the next rows of each table, from where the minute before stopped, and
 * begins again at the end: the cost of a minute does not depend on how many rows are kept.
 */

/** Where scans go on, kept from one sweep to the next. */
export interface Cursors {
  get(name: string): readonly string[] | null;
  set(name: string, cursor: readonly string[] | null): void;
}

/** What is old, by the name of its cursor. */
const RULES = {
  eventsDeleted: ({ now, retention }: Context): PurgeRule => {
    const days = requireDays("EVENT_RETENTION_DAYS", retention().eventDays);
    const madeBefore = (age: number) => eventIdPrefix(startOf(now(), age));
    return oldEvents({ delivered: madeBefore(days), undelivered: madeBefore(days * UNDELIVERED_RETENTION_FACTOR) });
  },
  historyDeleted: ({ now, retention }: Context): PurgeRule =>
    oldHistory(historyId(startOf(now(), requireDays("HISTORY_RETENTION_DAYS", retention().historyDays)))),
};

export type Purge = keyof typeof RULES;

/** One chunk of a scan. @returns how many rows were deleted, and whether the scan has come to the end of the table */
export async function purge(
  context: Context,
  name: Purge,
  cursors: Cursors,
): Promise<{ deleted: number; isFinished: boolean }> {
  const { deleted, next } = await purgeChunk(context.db, RULES[name](context), cursors.get(name), PURGE_CHUNK_ROWS);
  cursors.set(name, next);
  return { deleted, isFinished: next === null };
}

/** So many days ago, in milliseconds. */
const startOf = (now: number, days: number): number => Math.max(0, now - Math.round(days * DAY_MILLISECONDS));

function requireDays(variable: string, days: number | null): number {
  if (days === null) throw new Error(`${variable} is not a number of days`);
  return days;
}
