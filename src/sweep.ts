import { resealSome } from "./applications/resealing.ts";
import type { Context } from "./context.ts";
import { endDueInvitations } from "./invitations/expire.ts";
import {
  MAX_QUEUE_BATCH_MESSAGES,
  MAX_SWEEP_WAKE_UPS,
  SWEEP_BUDGET_MILLISECONDS,
  SWEEP_CHUNK_ROWS,
  WAKE_UP_GRACE_MILLISECONDS,
} from "./limits.ts";
import { log } from "./log.ts";
import { findDueEvents, releaseHeldEvents } from "./storage/webhook-events.ts";

/**
 * Finds and finishes what time has made due or a crash has left: once a minute, in bounded chunks. Whatever it does can
 * be repeated, also by two sweeps at once.
 */
export async function sweep(context: Context): Promise<void> {
  const startedAt = Date.now();
  const done = {
    released: await repeat(startedAt, () => releaseHeldEvents(context.db, SWEEP_CHUNK_ROWS)),
    woken: await wakeDueEvents(context),
    ...(await endInvitations(context, startedAt)),
    resealed: await repeat(startedAt, () => resealSome(context.db, context.sealingKeys)),
  };
  const didAnything = Object.values(done).some((count) => count > 0);
  if (!didAnything) return;
  log("info", {
    event: "sweep",
    eventsReleased: done.released,
    eventsWoken: done.woken,
    invitationsExpired: done.expired,
    numbersReleased: done.numbersReleased,
    valuesResealed: done.resealed,
    milliseconds: Date.now() - startedAt,
    d1RoundTrips: context.db.roundTrips,
  });
}

async function endInvitations(
  context: Context,
  startedAt: number,
): Promise<{ expired: number; numbersReleased: number }> {
  const total = { expired: 0, numbersReleased: 0 };
  await repeat(startedAt, async () => {
    const { expired, released } = await endDueInvitations(context, null);
    total.expired += expired;
    total.numbersReleased += released;
    return expired + released;
  });
  return total;
}

/** Runs chunks until one finds nothing, or until the sweep's time is over and the rest waits a minute. */
async function repeat(startedAt: number, chunk: () => Promise<number>): Promise<number> {
  let total = 0;
  while (Date.now() - startedAt < SWEEP_BUDGET_MILLISECONDS) {
    const count = await chunk();
    if (count === 0) break;
    total += count;
  }
  return total;
}

/** Sends a wake-up for events that are due: their first one was lost, or their wait was too long for the queue. */
async function wakeDueEvents({ db, queue, now }: Context): Promise<number> {
  const due = await findDueEvents(db, now(), now() - WAKE_UP_GRACE_MILLISECONDS, MAX_SWEEP_WAKE_UPS);
  for (let start = 0; start < due.length; start += MAX_QUEUE_BATCH_MESSAGES) {
    await queue.sendBatch(due.slice(start, start + MAX_QUEUE_BATCH_MESSAGES).map((body) => ({ body })));
  }
  return due.length;
}
