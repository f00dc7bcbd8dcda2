import { BadgeServiceError, NoResponseError } from "../client/index.ts";

/** The state of a pass. words.ts has a sentence for each. */
export type State =
  | "loading"
  /** Not claimed yet. */
  | "invited"
  | "early"
  | "open"
  | "ended"
  /** The invitation was not claimed in time; the visit may still be ahead. */
  | "expired"
  | "revoked"
  | "suspended"
  /** Claimed by another phone, or another browser. */
  | "taken"
  /** The browser cannot keep a key. */
  | "unsuitable"
  /** No response. */
  | "offline"
  /** A response that will soon be different. */
  | "busy"
  /** The link is wrong, or the invitation was deleted. */
  | "unknown"
  /** The application requires its users to log in, and nobody vouches for this one. */
  | "app";

const STATES: Readonly<Record<string, State>> = {
  EARLY_BADGE: "early",
  EXPIRED_BADGE: "ended",
  EXPIRED_INVITATION: "expired",
  REVOKED_BADGE: "revoked",
  REVOKED_INVITATION: "revoked",
  BLOCKED_USER: "revoked",
  SUSPENDED_BADGE: "suspended",
  CLAIMED_INVITATION: "taken",
  UNKNOWN_INVITATION: "unknown",
  INVALID_INVITATIONTOKEN: "unknown",
  INVALID_APPLICATIONID: "unknown",
  INVALID_USERTOKEN: "app",
  WRONG_USER: "app",
};

/** The state of the pass after a failed call. */
export function stateAfter(error: unknown): State {
  if (error instanceof NoResponseError) return "offline";
  if (error instanceof BadgeServiceError && error.code !== null) return STATES[error.code] ?? "busy";
  return "busy";
}
