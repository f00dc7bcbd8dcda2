import { historyIdPrefix } from "../../shared/history.ts";
import { eventIdPrefix } from "../../shared/identifiers.ts";
import { UNDELIVERED_RETENTION_FACTOR } from "../../shared/limits/sweep-limits.ts";
import { DAY_MILLISECONDS } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { type Checkpoint, OLD_EVENTS, OLD_HISTORY, purgeChunk } from "../storage/retention.ts";

/**
 * Deletes old rows. Each tick scans the next rows of each table, and starts again after the last row. So the cost of a
 * tick does not depend on the number of rows. The allocator deletes old invitations.
 */

/** Where scans resume, kept from one sweep to the next. */
export interface Checkpoints {
  get(name: string): Checkpoint | null;
  set(name: string, checkpoint: Checkpoint | null): void;
}

/** A scan's next chunk, by the name of its checkpoint. */
export const SCANS = {
  eventsDeleted({ db, now, retention }: Context, after: Checkpoint | null) {
    const days = requireDays("EVENT_RETENTION_DAYS", retention().eventDays);
    const madeBefore = (age: number) => eventIdPrefix(daysBefore(now(), age));
    const before = { delivered: madeBefore(days), undelivered: madeBefore(days * UNDELIVERED_RETENTION_FACTOR) };
    return purgeChunk(db, OLD_EVENTS, before, after);
  },
  historyDeleted({ db, now, retention }: Context, after: Checkpoint | null) {
    const days = requireDays("HISTORY_RETENTION_DAYS", retention().historyDays);
    return purgeChunk(db, OLD_HISTORY, { before: historyIdPrefix(daysBefore(now(), days)) }, after);
  },
};

/** `now` − `days` in milliseconds. */
const daysBefore = (now: number, days: number): number => now - Math.round(days * DAY_MILLISECONDS);

function requireDays(variable: string, days: number | null): number {
  if (days === null) throw new Error(`${variable} is not a number of days`);
  return days;
}
