import type { BadgeState } from "../../shared/badge-life/states.ts";
import type { ErrorCode } from "../../shared/error-table.ts";
import type { DeviceId } from "../../shared/identifiers.ts";
import type { InvitationState } from "../../shared/schema.ts";

/**
 * The life of an invitation: pending, then claimed, revoked or expired, which are final. Decisions are pure; the write that
 * follows is conditional on what was read, so of two racing requests exactly one writes and the other decides again.
 */
export interface Invitation {
  state: InvitationState;
  /** Milliseconds. */
  expiresAtTime: number;
  /** Keyed digest of the udid that created it. */
  creatorDevice: DeviceId;
  /** Created with the application's secret. */
  withSecret: boolean;
  claimDevice: DeviceId | null;
  claimUserId: string | null;
}

/**
 * A pending invitation past its time has expired, even if the sweep has not recorded that yet. It is recorded before the
 * response: once a caller has seen it expired, a request that decided a moment earlier, or by a slower clock, must not claim
 * or revoke it.
 */
type Expire = { kind: "expire" };

const isPast = ({ expiresAtTime }: Invitation, now: number): boolean => expiresAtTime <= now;

export type ClaimDecision =
  | { kind: "claim" }
  | { kind: "already-claimed" }
  | Expire
  | { kind: "refuse"; code: ErrorCode };

/** Who presents a token. */
export interface Claimer {
  device: DeviceId;
  userId: string;
  isBlocked: boolean;
  /** State of the user device's badge; null: it has none. */
  badgeState: BadgeState | null;
  /** Whether that badge's key was proved, or none is needed (contract section 15). */
  hasKey: boolean;
}

/** Decides what happens when a token is presented (contract sections 5 and 12). */
export function decideClaim(invitation: Invitation | undefined, claimer: Claimer, now: number): ClaimDecision {
  if (!invitation) return { kind: "refuse", code: "UNKNOWN_INVITATION" };
  switch (invitation.state) {
    case "pending":
      return isPast(invitation, now) ? { kind: "expire" } : decideForClaimer(invitation, claimer);
    case "claimed": {
      const isClaimer = invitation.claimDevice === claimer.device && invitation.claimUserId === claimer.userId;
      return isClaimer ? { kind: "already-claimed" } : { kind: "refuse", code: "CLAIMED_INVITATION" };
    }
    case "revoked":
      return { kind: "refuse", code: "REVOKED_INVITATION" };
    case "expired":
      return { kind: "refuse", code: "EXPIRED_INVITATION" };
  }
}

/** Only an invitation created with the application's secret replaces a revoked badge, or one without its key. */
function decideForClaimer({ withSecret }: Invitation, { isBlocked, badgeState, hasKey }: Claimer): ClaimDecision {
  if (isBlocked) return { kind: "refuse", code: "BLOCKED_USER" };
  if (!hasKey && !withSecret) return { kind: "refuse", code: "INVALID_PROOF" };
  if (badgeState === "suspended") return { kind: "refuse", code: "SUSPENDED_BADGE" };
  if (badgeState === "revoked" && !withSecret) return { kind: "refuse", code: "REVOKED_BADGE" };
  return { kind: "claim" };
}

export type RevokeDecision =
  | { kind: "revoke" }
  | { kind: "already-revoked" }
  | Expire
  | { kind: "refuse"; code: ErrorCode };

/** @param revoker the application's server, or a device, which must have created the invitation */
export function decideRevoke(
  invitation: Invitation | undefined,
  revoker: { kind: "server" } | { kind: "device"; device: DeviceId },
  now: number,
): RevokeDecision {
  const isOtherCreator = revoker.kind === "device" && invitation?.creatorDevice !== revoker.device;
  if (!invitation || isOtherCreator) return { kind: "refuse", code: "UNKNOWN_INVITATION" };
  switch (invitation.state) {
    case "pending":
      return isPast(invitation, now) ? { kind: "expire" } : { kind: "revoke" };
    case "revoked":
      return { kind: "already-revoked" };
    case "claimed":
      return { kind: "refuse", code: "CLAIMED_INVITATION" };
    case "expired":
      return { kind: "refuse", code: "EXPIRED_INVITATION" };
  }
}
