import { BY_CLOCK, type Origin } from "../../../shared/actor.ts";
import { stateAt } from "../../../shared/badge-life/states.ts";
import type { ErrorCode } from "../../../shared/error-table.ts";
import type { InvitationRow, IssuedBadge } from "../../storage/rows.ts";
import { type BadgeCommand, type Outcome, refused } from "../commands.ts";
import type { Draft } from "./draft.ts";
import { tellOfBadge, tellOfNewBadge } from "./events.ts";
import { endInvitation } from "./invitation.ts";
import { issueNumber } from "./issue-number.ts";
import { mayBind, mayUse } from "./keys.ts";
import { logIn } from "./login.ts";

/** A token is presented (contract sections 2, 5, 12, 15, 22 and 24). */
export function decideClaim(
  draft: Draft,
  origin: Origin,
  command: BadgeCommand,
  { digest, token }: NonNullable<BadgeCommand["invitation"]>,
): Outcome {
  const invitation = draft.invitations.get(digest);
  if (!command.isVerified && !invitation?.withSecret) return refused("INVALID_USERTOKEN");
  if (!invitation) return refused("UNKNOWN_INVITATION");
  const own = draft.badgeOf(command.device, command.userId);
  switch (invitation.state) {
    case "claimed": {
      const isClaimer = invitation.claimDevice === command.device && invitation.claimUserId === command.userId;
      // If another invitation has replaced the badge since, the response is the user device's present badge.
      return isClaimer && own ? logIn(draft, command, own) : refused("CLAIMED_INVITATION");
    }
    case "revoked":
      return refused("REVOKED_INVITATION");
    case "expired":
      return refused("EXPIRED_INVITATION");
    case "pending":
      // Recorded before the response: whoever sees it expired once sees it expired for ever.
      if (invitation.expiresAtTime <= draft.now) {
        endInvitation(draft, BY_CLOCK, invitation, "expired");
        return refused("EXPIRED_INVITATION");
      }
      return claim(draft, origin, command, { invitation, token, own });
  }
}

function claim(
  draft: Draft,
  origin: Origin,
  command: BadgeCommand,
  { invitation, token, own }: { invitation: InvitationRow; token: string; own: IssuedBadge | undefined },
): Outcome {
  const code = refusalOf(draft, command, invitation, own);
  if (code !== null) return refused(code);
  const { device, userId, metadata, keyThumbprint } = command;
  const { number, digest, name, badgeStartsAtTime: startsAt, badgeExpiresAtTime: expiresAt } = invitation;
  const isReplaced = own !== undefined && own.state !== "revoked";
  if (own) supersede(draft, origin, own);
  const badge = { number, userId, metadata, keyThumbprint, name, startsAt };
  const replacedNumber = isReplaced ? own.number : null;
  const eventId = tellOfNewBadge(draft, badge, { invitationId: token, replacedNumber });
  issueNumber(draft, { ...badge, device, expiresAt, invitation: digest }, command, eventId);
  draft.invitations.set(digest, {
    ...invitation,
    state: "claimed",
    endedAt: draft.now,
    claimDevice: device,
    claimUserId: userId,
  });
  draft.note("badge:created", origin, { badge: number, userId });
  return { kind: "created", number, keyThumbprint };
}

/** Why a pending invitation may not be claimed, in the order of contract section 15; null: it may. */
function refusalOf(
  draft: Draft,
  { userId, keyThumbprint, rules }: BadgeCommand,
  { withSecret, userId: namedUser }: InvitationRow,
  own: IssuedBadge | undefined,
): ErrorCode | null {
  if (namedUser !== null && namedUser !== userId) return "WRONG_USER";
  if (draft.isBlocked(userId)) return "BLOCKED_USER";
  if (!own) return null;
  const hasKey = mayUse(own, keyThumbprint, rules) || mayBind(own, keyThumbprint, rules, draft.now);
  // The application's server vouches for the user; but a bound badge is never replaced by an unbound one.
  const isVouchedFor = withSecret && (own.keyThumbprint === null || (namedUser !== null && keyThumbprint !== null));
  if (!hasKey && !isVouchedFor) return "INVALID_PROOF";
  const state = stateAt(own, draft.now);
  if (state === "suspended") return "SUSPENDED_BADGE";
  // Only an invitation created with the application's secret gives a new badge in place of a revoked one.
  return state === "revoked" && !withSecret ? "REVOKED_BADGE" : null;
}

/** The badge is not its user device's any more. A revoked one stays revoked, and nothing that callers see changes. */
function supersede(draft: Draft, origin: Origin, own: IssuedBadge): void {
  const retired = { ...own, retiredAt: draft.now, endedAt: own.endedAt ?? draft.now };
  if (own.state === "revoked") {
    draft.keep(retired);
    return;
  }
  const replaced = draft.change({ ...retired, state: "replaced" });
  tellOfBadge(draft, "badge:replaced", replaced);
  draft.note("badge:replaced", origin, { badge: own.number, userId: own.userId });
}
