import { eventIdTime } from "../../shared/identifiers.ts";
import {
  LATE_EVENT_MILLISECONDS,
  MAX_APPLICATION_ENQUEUED,
  MAX_SWEEP_ENQUEUED,
  SWEEP_CHUNK_ROWS,
  UNTRIED_CHUNK_MILLISECONDS,
  UNTRIED_MILLISECONDS,
} from "../../shared/limits.ts";
import type { Context } from "../context.ts";
import {
  findDueEvents,
  findNextEvent,
  giveDueTimes,
  noteUntriedFrom,
  readUntriedFrom,
} from "../storage/webhook-backlog.ts";
import { enqueueAll } from "./delivery-message.ts";

/** What a tick does so that no event is forgotten, whatever messages were lost (contract section 8). */

/**
 * Enqueues due events: a message was lost, or a retry was too far away for the queue. They stay due until they are leased.
 *
 * @returns how many
 * @throws Unavailable
 */
export async function enqueueDueEvents({ db, queue, now }: Context): Promise<number> {
  const due = await findDueEvents(db, {
    now: now(),
    perApplication: MAX_APPLICATION_ENQUEUED,
    limit: MAX_SWEEP_ENQUEUED,
  });
  await enqueueAll(queue, due);
  return due.length;
}

/**
 * Gives events that nobody has tried a due time, one chunk. It walks through the time up to now, and D1 remembers how far it has
 * come, so that events are found however long the scheduler or the queue was down. Each tick walks through the last ten minutes
 * again, because an event may reach D1 late.
 *
 * @returns whether it has come up to now
 * @throws Unavailable
 */
export async function findUntriedEvents({ db, now }: Context): Promise<boolean> {
  const end = now() - UNTRIED_MILLISECONDS;
  const settled = now() - LATE_EVENT_MILLISECONDS;
  const noted = await readUntriedFrom(db);
  // The clock may have been set back.
  let from = Math.min(eventIdTime(noted), settled);
  if (end - from > UNTRIED_CHUNK_MILLISECONDS) {
    const next = (await findNextEvent(db, from)) ?? end;
    from = Math.max(from, Math.min(next, end));
  }
  const until = Math.min(from + UNTRIED_CHUNK_MILLISECONDS, end);
  if ((await giveDueTimes(db, [from, until], SWEEP_CHUNK_ROWS)) === SWEEP_CHUNK_ROWS) return false;
  await noteUntriedFrom(db, noted, Math.min(until, settled));
  return until === end;
}
