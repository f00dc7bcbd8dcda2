import type { ErrorCode } from "../../shared/error-table.ts";
import type { BadgeState } from "../badges/states.ts";

/**
 * The life of an invitation: pending, then one of claimed, revoked or expired, for ever. Pure decisions; the write that
 * follows one is conditional on what it was made from, so of two that race exactly one happens and the other decides
 * again.
 */
export type InvitationState = "pending" | "claimed" | "revoked" | "expired";

export interface Invitation {
  state: InvitationState;
  /** Milliseconds. */
  expiresAtTime: number;
  /** Keyed digest of the udid that created it. */
  creatorDevice: string;
  /** Created with the application's secret. */
  withSecret: boolean;
  claimDevice: string | null;
  claimUserId: string | null;
}

/**
 * Past its time a pending invitation is expired, whether the sweep has come by or not. That is written before it is
 * answered: a request that decided a moment earlier, or by a slower clock, must not end the invitation otherwise after
 * somebody was told that it expired.
 */
type Expire = { kind: "expire" };

const isPast = ({ expiresAtTime }: Invitation, now: number): boolean => expiresAtTime <= now;

export type ClaimDecision =
  | { kind: "claim" }
  | { kind: "claimed-before" }
  | Expire
  | { kind: "refuse"; code: ErrorCode };

/** Who presents a token. */
export interface Claimer {
  device: string;
  userId: string;
  isBlocked: boolean;
  /** State of the badge that the user device has; null: it has none. */
  badgeState: BadgeState | null;
}

/** Presenting a token (contract sections 5 and 12). */
export function decideClaim(invitation: Invitation | undefined, claimer: Claimer, now: number): ClaimDecision {
  if (!invitation) return { kind: "refuse", code: "UNKNOWN_INVITATION" };
  switch (invitation.state) {
    case "pending":
      return isPast(invitation, now) ? { kind: "expire" } : decideForClaimer(invitation, claimer);
    case "claimed": {
      const isClaimer = invitation.claimDevice === claimer.device && invitation.claimUserId === claimer.userId;
      return isClaimer ? { kind: "claimed-before" } : { kind: "refuse", code: "CLAIMED_INVITATION" };
    }
    case "revoked":
      return { kind: "refuse", code: "REVOKED_INVITATION" };
    case "expired":
      return { kind: "refuse", code: "EXPIRED_INVITATION" };
  }
}

/** A badge that was revoked comes back only by an invitation of the application's server. */
function decideForClaimer({ withSecret }: Invitation, { isBlocked, badgeState }: Claimer): ClaimDecision {
  if (isBlocked) return { kind: "refuse", code: "BLOCKED_USER" };
  if (badgeState === "suspended") return { kind: "refuse", code: "SUSPENDED_BADGE" };
  if (badgeState === "revoked" && !withSecret) return { kind: "refuse", code: "REVOKED_BADGE" };
  return { kind: "claim" };
}

export type RevokeDecision =
  | { kind: "revoke" }
  | { kind: "revoked-before" }
  | Expire
  | { kind: "refuse"; code: ErrorCode };

/** @param revoker the application's server, or the device that must have created the invitation */
export function decideRevoke(
  invitation: Invitation | undefined,
  revoker: { kind: "server" } | { kind: "device"; device: string },
  now: number,
): RevokeDecision {
  const isForeign = revoker.kind === "device" && invitation?.creatorDevice !== revoker.device;
  if (!invitation || isForeign) return { kind: "refuse", code: "UNKNOWN_INVITATION" };
  switch (invitation.state) {
    case "pending":
      return isPast(invitation, now) ? { kind: "expire" } : { kind: "revoke" };
    case "revoked":
      return { kind: "revoked-before" };
    case "claimed":
      return { kind: "refuse", code: "CLAIMED_INVITATION" };
    case "expired":
      return { kind: "refuse", code: "EXPIRED_INVITATION" };
  }
}
