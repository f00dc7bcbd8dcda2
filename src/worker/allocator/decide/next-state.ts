import { type BadgeLife, type BadgeState, stateAt } from "../../../shared/badge-lifecycle/states.ts";

/** What a transition reads and changes. Times are milliseconds, or null. */
export type Life = BadgeLife & { startsAt: number | null };

/** `expire` records that a badge has expired. Replacing is no transition of its own: a claim does it. */
export type Transition =
  | { kind: "suspend" | "resume" | "revoke" | "expire" | "rebind" }
  /** Times that are not given stay as they are; null clears one. */
  | { kind: "reschedule"; expiresAt?: number | null; startsAt?: number | null };

export type Decision =
  | { kind: "unchanged" }
  /** A start that is not before the end. */
  | { kind: "invalid" }
  | { kind: "refused" }
  /** `becomes`: the new state that callers see, which an event reports; null if they see the same state as before. */
  | { kind: "changed"; next: Life; becomes: BadgeState | null };

const UNCHANGED: Decision = { kind: "unchanged" };
const REFUSED: Decision = { kind: "refused" };

/** Decides one transition of a badge (contract section 12). */
export function decideState(badge: Life, transition: Transition, now: number): Decision {
  const state = stateAt(badge, now);
  switch (transition.kind) {
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
    case "reschedule":
      return state === "revoked" || state === "replaced" ? REFUSED : reschedule(badge, transition, now);
    case "rebind":
      return state === "revoked" || state === "replaced" ? REFUSED : UNCHANGED;
    case "expire":
      if (state !== "expired" || badge.endedAt !== null) return UNCHANGED;
      return changed({ ...badge, endedAt: badge.expiresAt }, "expired");
  }
}

/** An expired badge returns to its stored state when its end is moved ahead. */
function reschedule(badge: Life, transition: Extract<Transition, { kind: "reschedule" }>, now: number): Decision {
  const { expiresAt = badge.expiresAt, startsAt = badge.startsAt } = transition;
  if (expiresAt === badge.expiresAt && startsAt === badge.startsAt) return UNCHANGED;
  if (startsAt !== null && expiresAt !== null && startsAt >= expiresAt && transition.startsAt != null)
    return { kind: "invalid" };
  if (expiresAt === badge.expiresAt) return changed({ ...badge, startsAt }, null);
  const after = stateAt({ state: badge.state, expiresAt }, now);
  const endedAt = after === "expired" ? (badge.endedAt ?? now) : null;
  // An expiry that was not recorded yet is reported now, unless the new end means that the badge has not expired.
  const wasRecorded = badge.endedAt !== null;
  const isReported = (after === "expired") !== wasRecorded;
  return changed({ state: badge.state, startsAt, expiresAt, endedAt }, isReported ? after : null);
}

const changed = (next: Life, becomes: BadgeState | null): Decision => ({ kind: "changed", next, becomes });
