import { type AuditContext, BY_CLOCK } from "../../../shared/actor.ts";
import { stateAt } from "../../../shared/badge-lifecycle/states.ts";
import type { ErrorCode } from "../../../shared/error-table.ts";
import { isAlias } from "../../../shared/identifiers.ts";
import type { InvitationRow, IssuedBadge } from "../../storage/rows.ts";
import { type BadgeCommand, type Result, refused } from "../commands.ts";
import type { Transaction } from "../transaction.ts";
import { endInvitation } from "./end-invitation.ts";
import { addBadgeEvent, addNewBadgeEvent } from "./events.ts";
import { issueNumber } from "./issue-number.ts";
import { mayBind, mayUse } from "./key-binding.ts";
import { logIn } from "./log-in.ts";

/** Prefix of visitors' user IDs (contract section 22). */
const VISITOR_PREFIX = "visitor-";

/** Decides a login that presents an invitation token (contract sections 2, 5, 12, 15, 22 and 24). */
export function decideClaim(
  transaction: Transaction,
  audit: AuditContext,
  command: BadgeCommand,
  { digest, token }: NonNullable<BadgeCommand["invitation"]>,
): Result {
  const { tables, now } = transaction;
  const invitation = tables.invitation(digest);
  if (!command.isVerified && !vouchesFor(invitation, command.userId)) return refused("INVALID_USERTOKEN");
  if (!invitation) return refused("UNKNOWN_INVITATION");
  const own = tables.badgeOf(command.device, command.userId);
  switch (invitation.state) {
    case "claimed": {
      const isClaimer = invitation.claimDevice === command.device && invitation.claimUserId === command.userId;
      // If another invitation has replaced the badge since, the response is the user device's present badge.
      return isClaimer && own ? logIn(transaction, command, own) : refused("CLAIMED_INVITATION");
    }
    case "revoked":
      return refused("REVOKED_INVITATION");
    case "expired":
      return refused("EXPIRED_INVITATION");
    case "pending":
      // Recorded before the response: once it has been seen as expired, it stays expired.
      if (invitation.expiresAtTime <= now) {
        endInvitation(transaction, BY_CLOCK, invitation, "expired");
        return refused("EXPIRED_INVITATION");
      }
      return claim(transaction, audit, command, { invitation, token, own });
  }
}

/**
 * Whether the server that made the invitation vouches for the user. Such a user needs no user token, gets a new badge in place
 * of a revoked one, and, if the invitation names the user, may replace a badge that is bound to another key. Reception vouches
 * for visitors only (contract sections 12, 15 and 22).
 */
const vouchesFor = (invitation: InvitationRow | undefined, userId: string): boolean =>
  invitation?.withSecret === true && (!invitation.byReception || userId.startsWith(VISITOR_PREFIX));

function claim(
  transaction: Transaction,
  audit: AuditContext,
  command: BadgeCommand,
  { invitation, token, own }: { invitation: InvitationRow; token: string; own: IssuedBadge | undefined },
): Result {
  const code = refusalOf(transaction, command, invitation, own);
  if (code !== null) return refused(code);
  const { device, userId, metadata, keyThumbprint, rules } = command;
  const { number, digest, name, badgeStartsAtTime: startsAt, badgeExpiresAtTime: expiresAt } = invitation;
  const isReplaced = own !== undefined && own.state !== "revoked";
  if (own) supersede(transaction, audit, own);
  const badge = { number, userId, metadata, keyThumbprint, name, startsAt };
  const replacedNumber = isReplaced ? own.number : null;
  const eventId = addNewBadgeEvent(transaction, badge, { invitationId: token, replacedNumber });
  const reserved = transaction.tables.badge(number);
  issueNumber(transaction, reserved, { ...badge, device, expiresAt, invitation: digest, eventId }, rules);
  transaction.updateInvitation(invitation, {
    ...invitation,
    state: "claimed",
    endedAt: transaction.now,
    claimDevice: device,
    claimUserId: userId,
  });
  transaction.addHistory("badge:created", audit, { badge: number, userId });
  return { kind: "created", number, keyThumbprint };
}

/** Why a pending invitation may not be claimed, in the order of contract section 15; null: it may. */
function refusalOf(
  { tables, now }: Transaction,
  { userId, userDigest, keyThumbprint, rules }: BadgeCommand,
  invitation: InvitationRow,
  own: IssuedBadge | undefined,
): ErrorCode | null {
  const { userId: namedUser } = invitation;
  // Nobody may claim it under an alias, which `GET /v1/invitation` shows to every holder of the token.
  if (namedUser !== null && (namedUser !== userId || isAlias(namedUser))) return "WRONG_USER";
  if (tables.isBlocked(userId, userDigest)) return "BLOCKED_USER";
  if (own) {
    const hasKey = mayUse(own, keyThumbprint, rules) || mayBind(own, keyThumbprint, rules, now);
    const isVouchedFor = vouchesFor(invitation, userId);
    // A bound badge is never replaced by an unbound one.
    const needsKey = !isVouchedFor || (own.keyThumbprint !== null && (namedUser === null || keyThumbprint === null));
    if (needsKey && !hasKey) return "INVALID_PROOF";
    const state = stateAt(own, now);
    if (state === "suspended") return "SUSPENDED_BADGE";
    if (state === "revoked" && !isVouchedFor) return "REVOKED_BADGE";
  }
  const endsOwnBadge = own !== undefined && own.endedAt === null;
  return !endsOwnBadge && tables.hasAllBadges(userId) ? "TOO_MANY_BADGES" : null;
}

/** The badge no longer belongs to its user device. A revoked one stays revoked, and callers see no change. */
function supersede(transaction: Transaction, audit: AuditContext, own: IssuedBadge): void {
  const { now } = transaction;
  const retired = { ...own, supersededAt: now, endedAt: own.endedAt ?? now };
  if (own.state === "revoked") {
    transaction.keepBadge(own, retired);
    return;
  }
  const replaced = transaction.changeBadge(own, { ...retired, state: "replaced" });
  addBadgeEvent(transaction, "badge:replaced", replaced);
  transaction.addHistory("badge:replaced", audit, { badge: own.number, userId: own.userId });
}
