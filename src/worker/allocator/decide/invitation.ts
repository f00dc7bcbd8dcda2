import { type AuditContext, BY_CLOCK } from "../../../shared/actor.ts";
import type { ErrorCode } from "../../../shared/error-table.ts";
import type { InvitationDigest } from "../../../shared/identifiers.ts";
import { MAX_BADGE_DAYS, MAX_INVITATION_DAYS } from "../../../shared/limits/request-limits.ts";
import { DAY_MILLISECONDS } from "../../../shared/time.ts";
import type { BadgeRow, InvitationRow } from "../../storage/rows.ts";
import {
  type EraseInvitationCommand,
  type InviteCommand,
  type NewInvitation,
  type Result,
  type RevokeInvitationCommand,
  type Revoker,
  refused,
} from "../commands.ts";
import type { Transaction } from "../transaction.ts";
import { endInvitation } from "./end-invitation.ts";
import { takeLimitedNumber, takeNumber } from "./take-number.ts";

/** Reserves a number for each invitation until it is claimed, revoked or expires (contract sections 5, 12 and 24). */
export function decideInvite(transaction: Transaction, audit: AuditContext, command: InviteCommand): Result {
  const results = command.invitations.map((invitation) => invite(transaction, audit, command, invitation));
  const codes = results.map((result) => ("code" in result ? result.code : null));
  // If settings may be why nothing was done, the caller retries with newer ones.
  for (const code of ["NUMBERS_EXHAUSTED", "RATE_LIMITED"] as const) {
    if (codes.every((one) => one === code)) return refused(code);
  }
  return { kind: "invitations", results };
}

/** With an Idempotency-Key, a repeated request gets the same invitation, also when it has ended. */
function invite(
  transaction: Transaction,
  audit: AuditContext,
  { rules }: InviteCommand,
  invitation: NewInvitation,
): { number: number } | { code: ErrorCode } {
  const { tables, now } = transaction;
  const known = tables.invitation(invitation.digest);
  if (known) return isSame(known, invitation) ? { number: known.number } : { code: "INVALID_IDEMPOTENCYKEY" };
  const fault = faultOfTimes(invitation, now);
  if (fault !== null) return { code: fault };
  const number = invitation.withSecret
    ? (takeNumber(transaction, rules) ?? "NUMBERS_EXHAUSTED")
    : takeLimitedNumber(transaction, rules);
  if (typeof number === "string") return { code: number };
  transaction.insertBadge({ ...RESERVATION, number, invitation: invitation.digest });
  transaction.insertInvitation({
    ...invitation,
    number,
    state: "pending",
    endedAt: null,
    claimDevice: null,
    claimUserId: null,
  });
  transaction.addHistory("invitation:created", audit, { badge: number, userId: invitation.userId });
  return { number };
}

/** Why an invitation's times are refused (contract sections 5, 12 and 24); null: they are not. */
function faultOfTimes(
  { expiresAt, badgeExpiresAtTime: badgeEnd, badgeStartsAtTime: badgeStart }: NewInvitation,
  now: number,
): ErrorCode | null {
  const isAhead = (time: number, maxDays: number) => time > now && time <= now + maxDays * DAY_MILLISECONDS;
  if (!isAhead(Date.parse(expiresAt), MAX_INVITATION_DAYS)) return "INVALID_EXPIRESAT";
  if (badgeEnd !== null && !isAhead(badgeEnd, MAX_BADGE_DAYS)) return "INVALID_BADGEEXPIRESAT";
  return badgeStart !== null && badgeEnd !== null && badgeStart >= badgeEnd ? "INVALID_STARTSAT" : null;
}

/** A number that an invitation reserves. */
const RESERVATION: Omit<BadgeRow, "number" | "invitation"> = {
  device: null,
  userId: null,
  metadata: null,
  signingKeyId: null,
  eventId: null,
  ordinal: null,
  loginSequence: null,
  issuedAt: null,
  state: "active",
  expiresAt: null,
  startsAt: null,
  name: null,
  endedAt: null,
  supersededAt: null,
  keyThumbprint: null,
  rebindUntil: null,
  change: null,
  changedAt: null,
  statusChange: null,
};

/** Whether a repeated request has in common with the first one what it must. */
const isSame = (known: InvitationRow, wanted: NewInvitation): boolean =>
  known.creatorDevice === wanted.creatorDevice &&
  known.expiresAt === wanted.expiresAt &&
  known.badgeExpiresAt === wanted.badgeExpiresAt &&
  known.badgeStartsAt === wanted.badgeStartsAt &&
  known.name === wanted.name &&
  known.userId === wanted.userId;

export function decideRevocation(
  transaction: Transaction,
  audit: AuditContext,
  command: RevokeInvitationCommand,
): Result {
  const { id, revoker } = command;
  const found = find(transaction, id);
  if (!found || !mayRevoke(found, revoker)) return refused("UNKNOWN_INVITATION");
  const invitation = withRecordedEnd(transaction, found);
  if (invitation.state === "claimed") return refused("CLAIMED_INVITATION");
  // A number identifies an invitation only while it is reserved (contract section 12).
  if (typeof id === "number" && invitation.state !== "pending") return refused("UNKNOWN_INVITATION");
  if (invitation.state === "expired") return refused("EXPIRED_INVITATION");
  const revoked =
    invitation.state === "revoked" ? invitation : endInvitation(transaction, audit, invitation, "revoked");
  const { number, expiresAt, endedAt } = revoked;
  return { kind: "invitation-revoked", number, expiresAt, revokedAt: endedAt ?? transaction.now };
}

/** Revokes the invitation if it is pending, and deletes whom it names (contract section 24). */
export function decideInvitationErasure(
  transaction: Transaction,
  audit: AuditContext,
  { id }: EraseInvitationCommand,
): Result {
  const found = find(transaction, id);
  if (!found) return refused("UNKNOWN_INVITATION");
  const isPast = typeof id === "number" && withRecordedEnd(transaction, found).state !== "pending";
  if (isPast) return refused("UNKNOWN_INVITATION");
  // Cleared first, because the history of its end would name the person.
  const nameless = { ...found, name: null, userId: null };
  transaction.updateInvitation(found, nameless);
  const invitation = withRecordedEnd(transaction, nameless);
  if (invitation.state === "pending") endInvitation(transaction, audit, invitation, "revoked");
  return { kind: "invitation-erased", number: invitation.number };
}

/** The invitation as it is now: if its end has passed, that is recorded. */
function withRecordedEnd(transaction: Transaction, invitation: InvitationRow): InvitationRow {
  const isPast = invitation.state === "pending" && invitation.expiresAtTime <= transaction.now;
  return isPast ? endInvitation(transaction, BY_CLOCK, invitation, "expired") : invitation;
}

/** If an Idempotency-Key is used again after its first invitation was deleted, the same token gets another number. */
function find({ tables }: Transaction, id: InvitationDigest | number): InvitationRow | undefined {
  if (typeof id !== "number") return tables.invitation(id);
  const digest = tables.badge(id)?.invitation;
  const invitation = digest == null ? undefined : tables.invitation(digest);
  return invitation?.number === id ? invitation : undefined;
}

const mayRevoke = ({ creatorDevice }: InvitationRow, revoker: Revoker): boolean =>
  revoker.kind === "server" || revoker.device === creatorDevice;
