import { BadgeServiceError, NoResponseError } from "../client/index.ts";

/** How a pass stands. Each is a sentence of `words.ts`. */
export type State =
  | "loading"
  /** Nobody has shown the pass yet. */
  | "invited"
  | "early"
  | "open"
  | "ended"
  | "revoked"
  | "suspended"
  /** By another phone, or another browser. */
  | "taken"
  /** The browser cannot keep a key. */
  | "unsuitable"
  /** No response. */
  | "offline"
  /** A response that will be another one soon. */
  | "busy"
  /** The link is wrong, or the invitation was deleted. */
  | "unknown"
  /** The application wants its users to log in, and nobody vouches for this one. */
  | "app";

const STATES: Readonly<Record<string, State>> = {
  EARLY_BADGE: "early",
  EXPIRED_BADGE: "ended",
  EXPIRED_INVITATION: "ended",
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

/** How the pass stands after a call has failed. */
export function stateAfter(error: unknown): State {
  if (error instanceof NoResponseError) return "offline";
  if (error instanceof BadgeServiceError && error.code !== null) return STATES[error.code] ?? "busy";
  return "busy";
}
