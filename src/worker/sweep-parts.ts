import { revokeAll } from "../shared/badge-life/blocks.ts";
import {
  MAX_APPLICATION_WAKE_UPS,
  MAX_LOGGED_UNREADABLE,
  MAX_QUEUE_BATCH_MESSAGES,
  MAX_SWEEP_RECONCILIATIONS,
  MAX_SWEEP_WAKE_UPS,
  PLATFORM_DEADLINE_MILLISECONDS,
  SWEEP_CHUNK_BLOCKS,
  SWEEP_CHUNK_ROWS,
  WAKE_UP_GRACE_MILLISECONDS,
} from "../shared/limits.ts";
import { findUnfinishedBlocks } from "../shared/storage/blocked-users.ts";
import { type ExpiryCursor, recordExpiries } from "./badges/expiry.ts";
import { badgeStore } from "./badges/transitions.ts";
import type { Context } from "./context.ts";
import { expireChunk, releaseChunk } from "./invitations/expire.ts";
import { resealChunk } from "./keys/resealing.ts";
import { log } from "./log.ts";
import { withDeadline } from "./platform.ts";
import { reconcileChunk } from "./reconciliation.ts";
import { createEventPurge, createInvitationPurge } from "./retention.ts";
import { tickClock } from "./storage/clock.ts";
import { findOpenReconciliations, type Reconciliation } from "./storage/reconciliations.ts";
import type { ReadPositions } from "./storage/sealed-values.ts";
import { findDueEvents, releaseHeldEvents } from "./storage/webhook-backlog.ts";

/** Counts of what a sweep did, for its log line. */
export interface SweepCounts {
  eventsReleased: number;
  eventsWoken: number;
  badgesExpired: number;
  blocksFinished: number;
  restorationsNoticed: number;
  invitationsExpired: number;
  numbersReleased: number;
  valuesResealed: number;
  valuesUnreadable: number;
  chunksReconciled: number;
  reconciliationsSkipped: number;
  eventsDeleted: number;
  invitationsDeleted: number;
}

/** One chunk of one kind of work. @returns whether there may be more */
type Run = (context: Context, done: SweepCounts) => Promise<boolean>;

/** One kind of work. */
export interface SweepPart {
  name: string;
  /** Whether others would notice a delay of some minutes, so that every home gets a chunk of it in every minute. */
  isUrgent: boolean;
  /** How many statements a round trip of it has at most: D1 counts each (D1: Limits). */
  statements: number;
  run: Run;
}

/** The parts of one sweep of one home. Several keep a cursor from one chunk to the next, so every sweep has its own. */
export function createParts(): Map<string, SweepPart> {
  const urgent = { isUrgent: true };
  const patient = { isUrgent: false };
  const parts: SweepPart[] = [
    { name: "checkClock", ...urgent, statements: 2, run: checkClock },
    { name: "expireBadges", ...urgent, statements: 1, run: expireBadges() },
    { name: "finishBlocks", ...urgent, statements: 1, run: finishBlocks() },
    { name: "releaseEvents", ...urgent, statements: 1, run: releaseEvents },
    { name: "wakeEvents", ...urgent, statements: 1, run: wakeEvents },
    { name: "expireInvitations", ...patient, statements: 3, run: expireInvitations },
    { name: "releaseNumbers", ...patient, statements: 1, run: releaseNumbers() },
    { name: "resealValues", ...patient, statements: 4, run: resealValues() },
    { name: "reconcile", ...patient, statements: 3, run: reconcile() },
    { name: "deleteEvents", ...patient, statements: 2, run: deleteEvents() },
    { name: "deleteInvitations", ...patient, statements: 2, run: deleteInvitations() },
  ];
  return new Map(parts.map((part) => [part.name, part]));
}

async function releaseEvents({ db }: Context, done: SweepCounts): Promise<boolean> {
  const released = await releaseHeldEvents(db, SWEEP_CHUNK_ROWS);
  done.eventsReleased += released;
  return released > 0;
}

/** Sends wake-ups for due events: the first one was lost, or the delay was too long for the queue. */
async function wakeEvents({ db, queue, now }: Context, done: SweepCounts): Promise<boolean> {
  const due = await findDueEvents(db, {
    now: now(),
    createdBefore: now() - WAKE_UP_GRACE_MILLISECONDS,
    perApplication: MAX_APPLICATION_WAKE_UPS,
    limit: MAX_SWEEP_WAKE_UPS,
  });
  for (let start = 0; start < due.length; start += MAX_QUEUE_BATCH_MESSAGES) {
    const messages = due.slice(start, start + MAX_QUEUE_BATCH_MESSAGES).map((body) => ({ body }));
    await withDeadline("queue", PLATFORM_DEADLINE_MILLISECONDS, () => queue.sendBatch(messages));
  }
  done.eventsWoken += due.length;
  // The events stay due until they are claimed, so a second chunk would wake them twice.
  return false;
}

/** If D1 was restored to an older state, expires the cursors of every feed (contract section 13). */
async function checkClock({ db, allocator, now }: Context, done: SweepCounts): Promise<boolean> {
  const seen = await allocator.seenClock();
  const sequence = await tickClock(db, seen, now());
  if (sequence <= seen) done.restorationsNoticed++;
  await allocator.noteClock(sequence, seen);
  return false;
}

function expireBadges(): Run {
  let after: ExpiryCursor | null = null;
  return async (context, done) => {
    const { recorded, next } = await recordExpiries(context, after);
    done.badgesExpired += recorded;
    after = next;
    return next !== null;
  };
}

/** Finishes blocks whose request ended before every badge was revoked. Those that fail are the next sweep's. */
function finishBlocks(): Run {
  let failed = 0;
  return async (context, done) => {
    const before = context.now() - PLATFORM_DEADLINE_MILLISECONDS;
    const users = await findUnfinishedBlocks(context.db, before, { limit: SWEEP_CHUNK_BLOCKS, offset: failed });
    for (const user of users) {
      try {
        await revokeAll(badgeStore(context), user);
        done.blocksFinished++;
      } catch (error) {
        failed++;
        log("warn", { event: "block-left-to-sweep", application: user.applicationId, error });
      }
    }
    return users.length === SWEEP_CHUNK_BLOCKS;
  };
}

async function expireInvitations(context: Context, done: SweepCounts): Promise<boolean> {
  const { expired, released } = await expireChunk(context);
  done.invitationsExpired += expired;
  done.numbersReleased += released;
  return expired > 0;
}

function releaseNumbers(): Run {
  let afterApplicationId = "";
  return async (context, done) => {
    const { released, nextCursor } = await releaseChunk(context, afterApplicationId);
    done.numbersReleased += released;
    afterApplicationId = nextCursor ?? "";
    return nextCursor !== null;
  };
}

/** An application whose object fails is skipped until the next sweep, so the others do not wait for it. */
function reconcile(): Run {
  let waiting: Reconciliation[] | undefined;
  return async (context, done) => {
    waiting ??= await findOpenReconciliations(context.db, MAX_SWEEP_RECONCILIATIONS);
    const current = waiting.shift();
    if (!current) return false;
    try {
      const next = await reconcileChunk(context, current);
      done.chunksReconciled++;
      if (next) waiting.unshift(next);
    } catch (error) {
      done.reconciliationsSkipped++;
      log("warn", { event: "reconciliation-skipped", application: current.applicationId, error });
    }
    return waiting.length > 0;
  };
}

function deleteEvents(): Run {
  const purge = createEventPurge();
  return async (context, done) => {
    const { deleted, isFinished } = await purge(context);
    done.eventsDeleted += deleted;
    return !isFinished;
  };
}

function deleteInvitations(): Run {
  const purge = createInvitationPurge();
  return async (context, done) => {
    const { deleted, isFinished } = await purge(context);
    done.invitationsDeleted += deleted;
    return !isFinished;
  };
}

/** A value that cannot be opened is skipped until the next sweep. The log has its IDs, never the value. */
function resealValues(): Run {
  let after: ReadPositions | undefined;
  return async ({ db, sealingKeys }, done) => {
    const { resealed, unreadable, next } = await resealChunk(db, sealingKeys, after);
    for (const { value, error } of unreadable.slice(0, Math.max(0, MAX_LOGGED_UNREADABLE - done.valuesUnreadable))) {
      const { purpose, applicationId: application, id, sealingVersion } = value;
      log("error", { event: "value-not-resealed", purpose, application, id, sealingVersion, error });
    }
    done.valuesResealed += resealed;
    done.valuesUnreadable += unreadable.length;
    after = next ?? undefined;
    return next !== null;
  };
}
