import type { StoredState } from "../schema.ts";

/**
 * The life of a badge (contract section 12). Decisions are pure; the write that follows is conditional on the change number
 * that was read, so of two racing calls one writes and the other reads and decides again.
 */

/** What callers see. Only an active badge opens doors. */
export const BADGE_STATES = ["active", "suspended", "revoked", "expired", "replaced"] as const;
export type BadgeState = (typeof BADGE_STATES)[number];

/** Times are milliseconds. */
export interface BadgeLife {
  state: StoredState;
  /** Null: no end. */
  expiresAt: number | null;
  /** When it left the lists: it was revoked or replaced, or its expiry was recorded. */
  endedAt: number | null;
}

/** A recorded expiry counts even if the clock is behind, because the feed does not report it a second time. */
export function stateAt(
  { state, expiresAt, endedAt = null }: Pick<BadgeLife, "state" | "expiresAt"> & Partial<BadgeLife>,
  now: number,
): BadgeState {
  const isFinal = state === "revoked" || state === "replaced";
  const isPast = endedAt !== null || (expiresAt !== null && expiresAt <= now);
  return !isFinal && isPast ? "expired" : state;
}

/** `note-expiry` records that a badge has expired. Replacing is not a step: a claim does it in its own transaction. */
export type Step =
  | { kind: "suspend" | "resume" | "revoke" | "note-expiry" }
  | { kind: "set-end"; expiresAt: number | null };

export type Decision =
  | { kind: "unchanged" }
  | { kind: "refused" }
  /** `becomes`: the new state that callers see, which an event reports; null if they see the same state as before. */
  | { kind: "changed"; next: BadgeLife; becomes: BadgeState | null };

const UNCHANGED: Decision = { kind: "unchanged" };
const REFUSED: Decision = { kind: "refused" };

export function decide(badge: BadgeLife, step: Step, now: number): Decision {
  const state = stateAt(badge, now);
  switch (step.kind) {
    case "suspend":
      if (state === "suspended") return UNCHANGED;
      return state === "active" ? changed({ ...badge, state: "suspended" }, "suspended") : REFUSED;
    case "resume":
      if (state === "active") return UNCHANGED;
      return state === "suspended" ? changed({ ...badge, state: "active" }, "active") : REFUSED;
    case "revoke":
      if (state === "revoked") return UNCHANGED;
      if (state === "replaced") return REFUSED;
      return changed({ ...badge, state: "revoked", endedAt: badge.endedAt ?? now }, "revoked");
    case "set-end":
      return state === "revoked" || state === "replaced" ? REFUSED : decideEnd(badge, step.expiresAt, now);
    case "note-expiry":
      if (state !== "expired" || badge.endedAt !== null) return UNCHANGED;
      return changed({ ...badge, endedAt: badge.expiresAt }, "expired");
  }
}

/** An expired badge returns to its stored state when its end is moved ahead. */
function decideEnd(badge: BadgeLife, expiresAt: number | null, now: number): Decision {
  if (expiresAt === badge.expiresAt) return UNCHANGED;
  const after = stateAt({ state: badge.state, expiresAt }, now);
  const endedAt = after === "expired" ? (badge.endedAt ?? now) : null;
  // An expiry that was not recorded yet is reported now, unless the new end means that the badge has not expired.
  const wasRecorded = badge.endedAt !== null;
  const isReported = (after === "expired") !== wasRecorded;
  return changed({ state: badge.state, expiresAt, endedAt }, isReported ? after : null);
}

const changed = (next: BadgeLife, becomes: BadgeState | null): Decision => ({ kind: "changed", next, becomes });
