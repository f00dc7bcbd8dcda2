import { type ApplicationId, type DeviceId, invitationDigestOf, newInvitationToken } from "../../shared/identifiers.ts";
import { MAX_BADGE_DAYS, MAX_INVITATION_DAYS } from "../../shared/limits.ts";
import type { AllocationResult, AllocationRules } from "../allocator/allocations.ts";
import type { ReserveRequest } from "../allocator/allocator.ts";
import { deriveInvitationToken, type Inviter } from "../applications/devices.ts";
import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import { findInvitation, type StoredInvitation } from "../storage/invitations.ts";
import { revokePending } from "./end.ts";
import { retryWithFreedNumbers } from "./expire.ts";

export interface NewInvitation {
  /** Keyed digest of the udid. */
  device: DeviceId;
  inviter: Inviter;
  /** Both exactly as sent; `badgeExpiresAt` is null if it was not sent. */
  expiresAt: string;
  badgeExpiresAt: string | null;
  /** Null: none was sent, so a repeated request creates another invitation. */
  idempotencyKey: string | null;
}

export interface CreatedInvitation {
  /** The invitation token. Only its digest is stored. */
  id: string;
  number: number;
}

const DAY_MILLISECONDS = 24 * 3600 * 1000;

/**
 * Reserves a number until the invitation is claimed, revoked or expires (contract section 5). With an Idempotency-Key, a
 * repeated request gets the same invitation, even after it has ended (contract section 12).
 *
 * @throws Refusal
 * @throws Unavailable
 */
export async function createInvitation(
  context: Context,
  application: Application,
  request: NewInvitation,
): Promise<CreatedInvitation> {
  const { idempotencyKey, inviter, device } = request;
  const isRepeatable = idempotencyKey !== null;
  const id = isRepeatable
    ? await deriveInvitationToken(context.custody, application, inviter, idempotencyKey)
    : newInvitationToken();
  const invitation = await invitationDigestOf(id);
  if (isRepeatable) {
    const known = await findInvitation(context.db, application.id, invitation);
    if (known && !isSame(known, request)) throw new Refusal("INVALID_IDEMPOTENCYKEY");
    // A pending invitation's lease may be unconfirmed, and would then be settled as never reported; reserving confirms it.
    if (known && known.state !== "pending") return { id, number: known.number };
    if (known) return { id, number: await reserve(context, application, toReservation(known)) };
  }
  const createdAt = context.now();
  const times = requireTimes(request, createdAt);
  const { expiresAt, badgeExpiresAt } = request;
  const reservation = {
    invitation,
    creatorDevice: device,
    createdAt,
    expiresAt,
    badgeExpiresAt,
    withSecret: inviter.kind !== "device",
    isRepeatable,
  };
  return { id, number: await reserve(context, application, { ...reservation, ...times }) };
}

const isSame = (known: StoredInvitation, { device, expiresAt, badgeExpiresAt }: NewInvitation): boolean =>
  known.creatorDevice === device && known.expiresAt === expiresAt && known.badgeExpiresAt === badgeExpiresAt;

function toReservation({ digest, ...known }: StoredInvitation): ReserveRequest {
  const { creatorDevice, createdAt, expiresAt, expiresAtTime, badgeExpiresAt, badgeExpiresAtTime } = known;
  const { withSecret, isRepeatable } = known;
  const times = { expiresAt, expiresAtTime, badgeExpiresAt, badgeExpiresAtTime };
  return { invitation: digest, creatorDevice, createdAt, withSecret, isRepeatable, ...times };
}

/** The invitation ends with its badge if that is earlier. Times are milliseconds. @throws Refusal */
function requireTimes(
  { expiresAt, badgeExpiresAt }: NewInvitation,
  now: number,
): { expiresAtTime: number; badgeExpiresAtTime: number | null } {
  const end = requireAhead(expiresAt, MAX_INVITATION_DAYS, now);
  if (end === null) throw new Refusal("INVALID_EXPIRESAT");
  if (badgeExpiresAt === null) return { expiresAtTime: end, badgeExpiresAtTime: null };
  const badgeEnd = requireAhead(badgeExpiresAt, MAX_BADGE_DAYS, now);
  if (badgeEnd === null) throw new Refusal("INVALID_BADGEEXPIRESAT");
  return { expiresAtTime: Math.min(end, badgeEnd), badgeExpiresAtTime: badgeEnd };
}

/** @returns milliseconds; null if the time is past or too far ahead */
function requireAhead(text: string, maxDays: number, now: number): number | null {
  const time = Date.parse(text);
  return time > now && time <= now + maxDays * DAY_MILLISECONDS ? time : null;
}

/** @returns the reserved number */
async function reserve(context: Context, application: Application, request: ReserveRequest): Promise<number> {
  const result = await retryWithFreedNumbers(context, application, (rules) =>
    reserveOrEnd(context, application.id, rules, request),
  );
  switch (result.kind) {
    case "written":
    case "existing":
      return result.number;
    case "mismatched":
      throw new Refusal("INVALID_IDEMPOTENCYKEY");
    case "blocked":
      throw new Error("an invitation has no user yet");
    case "exhausted":
      throw new Refusal("NUMBERS_EXHAUSTED");
    case "contended":
      throw new Refusal("UNAVAILABLE", { detail: "contended" });
    case "unavailable":
      throw new Unavailable("allocator", undefined);
  }
}

/**
 * If the call fails, the object may still have reserved the number and confirmed its lease. The caller will never learn the
 * token, unless it can repeat the request, so the invitation is revoked. Best effort: revoking may fail as well.
 */
async function reserveOrEnd(
  context: Context,
  applicationId: ApplicationId,
  rules: AllocationRules,
  request: ReserveRequest,
): Promise<AllocationResult> {
  try {
    return await context.allocator.reserve(applicationId, rules, request);
  } catch (error) {
    if (!request.isRepeatable) {
      context.defer(
        revokePending(context, request.invitation).catch((fault) => {
          log("warn", { event: "unreported-invitation-left", application: applicationId, error: fault });
        }),
      );
    }
    throw error;
  }
}
