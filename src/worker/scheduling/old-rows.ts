import { historyIdPrefix } from "../../shared/history.ts";
import { eventIdPrefix } from "../../shared/identifiers.ts";
import { PURGE_CHUNK_ROWS, UNDELIVERED_RETENTION_FACTOR } from "../../shared/limits/sweep-limits.ts";
import { DAY_MILLISECONDS } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { type Checkpoint, type PurgedChunk, purgeEvents, purgeHistory } from "../storage/retention.ts";

/**
 * Deletes old rows. Each tick scans the next rows of each table, and starts again after the last row. So the cost of a
 * tick does not depend on the number of rows. The allocator deletes old invitations.
 */

/** Where scans resume, kept from one sweep to the next. */
export interface Checkpoints {
  get(name: string): Checkpoint | null;
  set(name: string, checkpoint: Checkpoint | null): void;
}

type ScanChunk = (context: Context, after: Checkpoint | null) => Promise<PurgedChunk>;

/** Scans by the names of their checkpoints. */
const SCANS = {
  eventsDeleted: ({ db, now, retention }, after) => {
    const days = requireDays("EVENT_RETENTION_DAYS", retention().eventDays);
    const madeBefore = (age: number) => eventIdPrefix(daysBefore(now(), age));
    const before = { delivered: madeBefore(days), undelivered: madeBefore(days * UNDELIVERED_RETENTION_FACTOR) };
    return purgeEvents(db, before, after, PURGE_CHUNK_ROWS);
  },
  historyDeleted: ({ db, now, retention }, after) => {
    const days = requireDays("HISTORY_RETENTION_DAYS", retention().historyDays);
    return purgeHistory(db, historyIdPrefix(daysBefore(now(), days)), after, PURGE_CHUNK_ROWS);
  },
} satisfies Record<string, ScanChunk>;

export type Purge = keyof typeof SCANS;

/** Runs one chunk of a scan. @returns the number of deleted rows, and whether the scan has reached the end of the table */
export async function purge(
  context: Context,
  name: Purge,
  checkpoints: Checkpoints,
): Promise<{ deleted: number; isFinished: boolean }> {
  const { deleted, next } = await SCANS[name](context, checkpoints.get(name));
  checkpoints.set(name, next);
  return { deleted, isFinished: next === null };
}

/** `now` − `days` in milliseconds. */
const daysBefore = (now: number, days: number): number => now - Math.round(days * DAY_MILLISECONDS);

function requireDays(variable: string, days: number | null): number {
  if (days === null) throw new Error(`${variable} is not a number of days`);
  return days;
}
