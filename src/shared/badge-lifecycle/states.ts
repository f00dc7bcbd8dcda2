/** States that callers see. Only an active badge opens doors. */
export const BADGE_STATES = ["active", "suspended", "revoked", "expired", "replaced"] as const;
export type BadgeState = (typeof BADGE_STATES)[number];

/** The clock decides whether a badge has expired. */
export type StoredState = Exclude<BadgeState, "expired">;

/** States of an invitation; all except `pending` are final. */
export const INVITATION_STATES = ["pending", "claimed", "revoked", "expired"] as const;
export type InvitationState = (typeof INVITATION_STATES)[number];

/** Times are milliseconds. */
export interface BadgeLife {
  state: StoredState;
  /** Null: no end. */
  expiresAt: number | null;
  /** When it left the lists, because it was revoked or replaced or its expiry was recorded. */
  endedAt: number | null;
}

/**
 * The state that callers see. A recorded expiry counts even if the clock is behind, because the feed would not report the
 * expiry a second time.
 */
export function stateAt(
  { state, expiresAt, endedAt = null }: Pick<BadgeLife, "state" | "expiresAt"> & Partial<BadgeLife>,
  now: number,
): BadgeState {
  const isFinal = state === "revoked" || state === "replaced";
  const isPast = endedAt !== null || (expiresAt !== null && expiresAt <= now);
  return !isFinal && isPast ? "expired" : state;
}
