import type { BadgeState } from "../../../shared/badge-lifecycle/states.ts";
import type { ErrorCode } from "../../../shared/error-table.ts";

/** Why device calls on a badge in this state are refused (contract section 12); null: they are not. */
export const refusalOfState = (state: BadgeState): ErrorCode | null => REFUSED_STATES[state];

const REFUSED_STATES = {
  active: null,
  suspended: "SUSPENDED_BADGE",
  revoked: "REVOKED_BADGE",
  expired: "EXPIRED_BADGE",
  // A signature may name it, and a call may have read it just before a claim superseded it.
  replaced: "REVOKED_BADGE",
} as const satisfies Record<BadgeState, ErrorCode | null>;
