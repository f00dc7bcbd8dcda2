import { BY_CLOCK, type Origin } from "../../../shared/actor.ts";
import type { ErrorCode } from "../../../shared/error-table.ts";
import type { BadgeRow, InvitationRow } from "../../storage/rows.ts";
import {
  type InviteCommand,
  type NewInvitation,
  type Outcome,
  type RevokeInvitationCommand,
  type Revoker,
  refused,
} from "../commands.ts";
import type { Draft } from "./draft.ts";
import { tellOfInvitation } from "./events.ts";
import { freeNumber, takeNumber } from "./numbers.ts";

/** Reserves a number for each invitation until it is claimed, revoked or expires (contract sections 5, 12 and 24). */
export function decideInvite(draft: Draft, origin: Origin, command: InviteCommand): Outcome {
  const results = command.invitations.map((invitation) => invite(draft, origin, command, invitation));
  const isExhausted = results.every((result) => "code" in result && result.code === "NUMBERS_EXHAUSTED");
  return isExhausted ? refused("NUMBERS_EXHAUSTED") : { kind: "invitations", results };
}

/** With an Idempotency-Key, a repeated request gets the same invitation, also when it has ended. */
function invite(
  draft: Draft,
  origin: Origin,
  { rules }: InviteCommand,
  invitation: NewInvitation,
): { number: number } | { code: ErrorCode } {
  const known = draft.invitations.get(invitation.digest);
  if (known) return isSame(known, invitation) ? { number: known.number } : { code: "INVALID_IDEMPOTENCYKEY" };
  if (invitation.expiresAtTime <= draft.now) {
    const isBadges = Date.parse(invitation.expiresAt) > draft.now;
    return { code: isBadges ? "INVALID_BADGEEXPIRESAT" : "INVALID_EXPIRESAT" };
  }
  const number = takeNumber(draft, rules);
  if (number === null) return { code: "NUMBERS_EXHAUSTED" };
  draft.keep({ ...RESERVATION, number, invitation: invitation.digest });
  draft.invitations.set(invitation.digest, {
    ...invitation,
    number,
    state: "pending",
    endedAt: null,
    claimDevice: null,
    claimUserId: null,
  });
  draft.size += 500;
  draft.note("invitation:created", origin, { badge: number, userId: invitation.userId });
  return { number };
}

/** A number that an invitation reserves. */
const RESERVATION: Omit<BadgeRow, "number" | "invitation"> = {
  device: null,
  userId: null,
  metadata: null,
  signingKeyId: null,
  eventId: null,
  position: null,
  turn: null,
  issuedAt: null,
  state: "active",
  expiresAt: null,
  startsAt: null,
  name: null,
  endedAt: null,
  retiredAt: null,
  keyThumbprint: null,
  rebindUntil: null,
  change: null,
  changedAt: null,
  statusChange: null,
};

/** What a repeated request must have in common with the first one. */
export function isSame(
  known: InvitationRow,
  wanted: Pick<NewInvitation, "creatorDevice" | "expiresAt" | "badgeExpiresAt" | "badgeStartsAt" | "name" | "userId">,
): boolean {
  return (
    known.creatorDevice === wanted.creatorDevice &&
    known.expiresAt === wanted.expiresAt &&
    known.badgeExpiresAt === wanted.badgeExpiresAt &&
    known.badgeStartsAt === wanted.badgeStartsAt &&
    known.name === wanted.name &&
    known.userId === wanted.userId
  );
}

export function decideRevocation(draft: Draft, origin: Origin, command: RevokeInvitationCommand): Outcome {
  const { id, revoker } = command;
  const invitation = typeof id === "number" ? ofNumber(draft, id) : draft.invitations.get(id);
  if (!invitation || !mayRevoke(invitation, revoker)) return refused("UNKNOWN_INVITATION");
  if (invitation.state === "claimed") return refused("CLAIMED_INVITATION");
  const isPast = invitation.state === "pending" && invitation.expiresAtTime <= draft.now;
  if (isPast) endInvitation(draft, BY_CLOCK, invitation, "expired");
  // A number identifies an invitation only while it is reserved (contract section 12).
  if (typeof id === "number" && (isPast || invitation.state !== "pending")) return refused("UNKNOWN_INVITATION");
  if (isPast || invitation.state === "expired") return refused("EXPIRED_INVITATION");
  const revoked = invitation.state === "revoked" ? invitation : endInvitation(draft, origin, invitation, "revoked");
  const { number, expiresAt, endedAt } = revoked;
  return { kind: "invitation-revoked", number, expiresAt, revokedAt: endedAt ?? draft.now };
}

/** An Idempotency-Key that is used again when its first invitation was deleted gives the same token another number. */
function ofNumber(draft: Draft, number: number): InvitationRow | undefined {
  const digest = draft.badges.get(number)?.invitation;
  const invitation = digest == null ? undefined : draft.invitations.get(digest);
  return invitation?.number === number ? invitation : undefined;
}

const mayRevoke = ({ creatorDevice }: InvitationRow, revoker: Revoker): boolean =>
  revoker.kind === "server" || revoker.device === creatorDevice;

/** Ends a pending invitation; its number is available again (contract section 5). */
export function endInvitation(
  draft: Draft,
  origin: Origin,
  invitation: InvitationRow,
  state: "revoked" | "expired",
): InvitationRow {
  const endedAt = state === "expired" ? invitation.expiresAtTime : draft.now;
  const ended = { ...invitation, state, endedAt };
  draft.invitations.set(invitation.digest, ended);
  freeNumber(draft, invitation.number, endedAt);
  tellOfInvitation(draft, `invitation:${state}`, ended);
  draft.note(`invitation:${state}`, origin, { badge: invitation.number, userId: invitation.userId });
  return ended;
}
