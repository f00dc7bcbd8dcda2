import type { InvitationDigest } from "../shared/identifiers.ts";
import { RECONCILE_CHUNK_ROWS } from "../shared/limits.ts";
import { findIssuedBadges, listChanges } from "../shared/storage/issued-badges.ts";
import { writeSteps } from "./badges/transitions.ts";
import type { Context } from "./context.ts";
import { wakeEvents } from "./invitations/end.ts";
import { endPending } from "./storage/invitation-ends.ts";
import {
  findEndedInvitations,
  listNumbers,
  type Progress,
  type Reconciliation,
  writeProgress,
} from "./storage/reconciliations.ts";

/** Result of one chunk, and where the next one starts: after a lease's ID or a badge number. */
interface Chunk {
  checked: number;
  changed: number;
  /** Null when the step is complete. */
  through: number | null;
}

/**
 * Processes one chunk of a reconciliation, which an administrator requests (`reconcile`) after D1 or an application's
 * object was restored to an older state. Numbers stay unique without it, because each side refuses what the other knows;
 * it restores what the older side forgot, so that invitations work and numbers become available again. Every chunk can be
 * repeated.
 *
 * @returns the state for the next chunk, or null when the reconciliation is finished or another sweep is ahead
 * @throws Unavailable when D1 or the object fails: nothing was recorded, so the chunk is repeated
 */
export async function reconcileChunk(context: Context, open: Reconciliation): Promise<Reconciliation | null> {
  const chunk = await processChunk(context, open);
  const after = { ...open, ...progressAfter(open, chunk, context.now()) };
  const isRecorded = await writeProgress(context.db, open, after);
  return isRecorded && after.finishedAt === null ? after : null;
}

function progressAfter(open: Reconciliation, { checked, changed, through }: Chunk, now: number): Progress {
  const counted = { checked: open.checked + checked, changed: open.changed + changed };
  if (through !== null) return { ...counted, step: open.step, through, finishedAt: null };
  switch (open.step) {
    case "leases":
      return { ...counted, step: "badges", through: 0, finishedAt: null };
    case "badges":
      return { ...counted, step: "revocations", through: 0, finishedAt: null };
    case "revocations":
      return { ...counted, step: "revocations", through: open.through, finishedAt: now };
  }
}

function processChunk(context: Context, open: Reconciliation): Promise<Chunk> {
  switch (open.step) {
    case "leases":
      return releaseEnded(context, open);
    case "badges":
      return open.restored === "d1" ? endReleased(context, open) : adoptMissing(context, open);
    case "revocations":
      return noteRevocations(context, open);
  }
}

/** The object is older: it has leases of invitations that have ended since. */
async function releaseEnded({ db, allocator }: Context, { applicationId, through }: Reconciliation): Promise<Chunk> {
  const leases = await allocator.invitationLeases(applicationId, through, RECONCILE_CHUNK_ROWS);
  const ended = await findEndedInvitations(db, leases.invitations);
  if (ended.length > 0) await allocator.release(applicationId, ended);
  return { checked: leases.invitations.length, changed: ended.length, through: leases.through };
}

/** The object is older: it lacks the leases of badges that were issued since. */
async function adoptMissing({ db, allocator }: Context, open: Reconciliation): Promise<Chunk> {
  const badges = await listNumbers(db, open, RECONCILE_CHUNK_ROWS);
  const changed = badges.length === 0 ? 0 : await allocator.adopt(open.applicationId, badges);
  return { checked: badges.length, changed, through: badges.at(-1)?.number ?? null };
}

/**
 * The object lacks badges that were revoked without it: by the script, or after the state it was restored to. Reads by
 * change number, so badges that are revoked meanwhile are found too.
 */
async function noteRevocations({ db, allocator }: Context, open: Reconciliation): Promise<Chunk> {
  const { badges } = await listChanges(db, open.applicationId, open.through, RECONCILE_CHUNK_ROWS);
  const revoked = badges.flatMap(({ state, changedAt, number, device, userId, invitation }) =>
    state === "revoked" ? [{ number, device, userId, invitation, revokedAt: changedAt }] : [],
  );
  const changed = revoked.length === 0 ? 0 : await allocator.noteRevocations(open.applicationId, revoked);
  const isFinished = revoked.length === 0 && badges.length < RECONCILE_CHUNK_ROWS;
  return { checked: revoked.length, changed, through: isFinished ? null : (badges.at(-1)?.change ?? null) };
}

/** D1 is older: it has invitations as pending that have ended since and whose numbers the object has released. */
async function endReleased(context: Context, open: Reconciliation): Promise<Chunk> {
  const { db, allocator } = context;
  const badges = await listNumbers(db, open, RECONCILE_CHUNK_ROWS);
  const reserved = badges.flatMap(({ number, invitation, device }) =>
    invitation !== null && device === null ? [{ digest: invitation, number }] : [],
  );
  const released = reserved.length === 0 ? [] : await allocator.findReleased(open.applicationId, reserved);
  const ended = released.length === 0 ? 0 : await endInvitations(context, released);
  const revoked = await repeatRevocations(context, open, badges);
  return { checked: badges.length, changed: ended + revoked, through: badges.at(-1)?.number ?? null };
}

/** @returns how many were still pending */
async function endInvitations(context: Context, digests: readonly InvitationDigest[]): Promise<number> {
  const { ended, events } = await endPending(context.db, digests, context.now());
  wakeEvents(context, events);
  return ended.size;
}

/** D1 is older: badges that were revoked since are not revoked there. @returns how many were revoked again */
async function repeatRevocations(
  context: Context,
  { applicationId }: Reconciliation,
  known: Awaited<ReturnType<typeof listNumbers>>,
): Promise<number> {
  const issued = known.filter(({ device }) => device !== null);
  if (issued.length === 0) return 0;
  const revoked = await context.allocator.findRevoked(applicationId, issued);
  if (revoked.length === 0) return 0;
  const badges = await findIssuedBadges(context.db, applicationId, revoked);
  return (await writeSteps(context, applicationId, badges, { kind: "revoke" }, context.now())).length;
}
