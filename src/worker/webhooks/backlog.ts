import { eventIdTime } from "../../shared/identifiers.ts";
import {
  FIRST_ENQUEUED_PER_APPLICATION,
  LATE_EVENT_MILLISECONDS,
  MAX_ENQUEUED_PER_APPLICATION,
  MAX_SWEEP_ENQUEUED,
  SWEEP_CHUNK_ROWS,
  UNTRIED_CHUNK_MILLISECONDS,
  UNTRIED_MILLISECONDS,
} from "../../shared/limits/sweep-limits.ts";
import type { Context } from "../context.ts";
import { findDueEvents, findNextEvent, giveDueTimes, readUntriedFrom } from "../storage/webhook-backlog.ts";
import { DeliveryPace, enqueueAll } from "./delivery-message.ts";

/** The tick's work on events, so that no event depends on its queue message. */

/**
 * Enqueues due events whose message was lost, or whose retry was too far ahead for the queue. They stay due until they
 * are leased.
 *
 * @returns their number
 * @throws Unavailable
 */
export async function enqueueDueEvents({ db, queue, now }: Context): Promise<number> {
  const startedAt = now();
  const find = (perApplication: number) =>
    findDueEvents(db, { now: startedAt, perApplication, limit: MAX_SWEEP_ENQUEUED });
  const first = await find(FIRST_ENQUEUED_PER_APPLICATION);
  const mayBeMore = first.length >= FIRST_ENQUEUED_PER_APPLICATION && first.length < MAX_SWEEP_ENQUEUED;
  const due = mayBeMore ? await find(MAX_ENQUEUED_PER_APPLICATION) : first;
  const paces = new Map(due.map(({ applicationId }) => [applicationId, new DeliveryPace()]));
  // In the order of `due`, so that no application's events wait for all of another's.
  const messages = due.flatMap((id) => paces.get(id.applicationId)?.messagesFor([id], startedAt) ?? []);
  await enqueueAll(queue, messages);
  return due.length;
}

/**
 * Gives one chunk of untried events a due time. It scans events by creation time, up to those that are
 * `UNTRIED_MILLISECONDS` old. D1 stores the progress, so events are found after any outage of the scheduler or the
 * queue. Each tick scans the last ten minutes again, because an event may reach D1 late.
 *
 * @returns whether the scan has reached its end
 * @throws Unavailable
 */
export async function findUntriedEvents({ db, now }: Context): Promise<boolean> {
  const end = now() - UNTRIED_MILLISECONDS;
  const settled = now() - LATE_EVENT_MILLISECONDS;
  const noted = await readUntriedFrom(db);
  // The clock may have been set back.
  const from = Math.min(eventIdTime(noted), settled);
  const isFarBehind = end - from > UNTRIED_CHUNK_MILLISECONDS;
  const next = (isFarBehind ? await findNextEvent(db, from) : from) ?? end;
  const until = Math.min(Math.max(from, next) + UNTRIED_CHUNK_MILLISECONDS, end);
  const checkpoint = { before: noted, moment: Math.min(until, settled) };
  // From the checkpoint on, although no event was found before `next`: D1 may have been restored since.
  const given = await giveDueTimes(db, [from, until], checkpoint, SWEEP_CHUNK_ROWS);
  return given < SWEEP_CHUNK_ROWS && until === end;
}
