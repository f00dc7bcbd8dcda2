import { RATE_LIMIT_WINDOW_SECONDS, UNAVAILABLE_RETRY_SECONDS } from "./limits/platform-limits.ts";

/** For a call with a wrong user token (RFC 6750 section 3.1). */
export const WRONG_TOKEN_CHALLENGE = 'Bearer error="invalid_token"';

/** The only table of public codes and their statuses (contract section 6). */
const TABLE = {
  INVALID_JSON: { status: 400 },
  INVALID_APPLICATIONID: { status: 401 },
  INVALID_CREDENTIALS: { status: 401 },
  INVALID_PROOF: { status: 401, challenge: 'DPoP error="invalid_dpop_proof", algs="ES256"' },
  USE_DPOP_NONCE: { status: 401, challenge: 'DPoP error="use_dpop_nonce", algs="ES256"' },
  INVALID_USERTOKEN: { status: 401, challenge: "Bearer" },
  SUSPENDED_BADGE: { status: 403 },
  REVOKED_BADGE: { status: 403 },
  EXPIRED_BADGE: { status: 403 },
  EARLY_BADGE: { status: 403 },
  BLOCKED_USER: { status: 403 },
  WRONG_USER: { status: 403 },
  READ_ONLY: { status: 403 },
  DOOR_ONLY: { status: 403 },
  NOT_FOUND: { status: 404 },
  UNKNOWN_APPLICATION: { status: 404 },
  UNKNOWN_BADGE: { status: 404 },
  UNKNOWN_INVITATION: { status: 404 },
  UNKNOWN_EVENT: { status: 404 },
  UNKNOWN_STATUSLIST: { status: 404 },
  METHOD_NOT_ALLOWED: { status: 405 },
  CLAIMED_INVITATION: { status: 409 },
  ENDED_BADGE: { status: 409 },
  TOO_MANY_BADGES: { status: 409 },
  EXPIRED_INVITATION: { status: 410 },
  REVOKED_INVITATION: { status: 410 },
  EXPIRED_CURSOR: { status: 410 },
  CHANGED_BADGE: { status: 412 },
  PAYLOAD_TOO_LARGE: { status: 413 },
  UNDEFINED_APPLICATIONID: { status: 422 },
  UNDEFINED_UDID: { status: 422 },
  UNDEFINED_USERID: { status: 422 },
  UNDEFINED_BASE64: { status: 422 },
  UNDEFINED_EXPIRESAT: { status: 422 },
  INVALID_UDID: { status: 422 },
  INVALID_USERID: { status: 422 },
  INVALID_METADATA: { status: 422 },
  INVALID_BASE64: { status: 422 },
  INVALID_EXPIRESAT: { status: 422 },
  INVALID_BADGEEXPIRESAT: { status: 422 },
  INVALID_STARTSAT: { status: 422 },
  INVALID_IDEMPOTENCYKEY: { status: 422 },
  INVALID_NAME: { status: 422 },
  INVALID_INVITATIONS: { status: 422 },
  INVALID_ACTOR: { status: 422 },
  INVALID_STATE: { status: 422 },
  INVALID_INVITATIONTOKEN: { status: 422 },
  INVALID_PER_PAGE: { status: 422 },
  INVALID_CURSOR: { status: 422 },
  RATE_LIMITED: { status: 429, retryAfterSeconds: RATE_LIMIT_WINDOW_SECONDS },
  INTERNAL_ERROR: { status: 500 },
  NOT_IMPLEMENTED: { status: 501 },
  NUMBERS_EXHAUSTED: { status: 503 },
  UNAVAILABLE: { status: 503, retryAfterSeconds: UNAVAILABLE_RETRY_SECONDS },
} as const satisfies Record<string, { status: number; retryAfterSeconds?: number; challenge?: string }>;

/** The error code of a refused request, for callers and the log. */
export type ErrorCode = keyof typeof TABLE;

/** The codes of one status. */
export type CodeOfStatus<Status extends PublicError["status"]> = {
  [Code in ErrorCode]: (typeof TABLE)[Code]["status"] extends Status ? Code : never;
}[ErrorCode];

interface PublicError {
  status: (typeof TABLE)[ErrorCode]["status"];
  /** Seconds, for the `Retry-After` header. */
  retryAfterSeconds?: number;
  /** The `WWW-Authenticate` header (RFC 9449 section 7.1, RFC 6750 section 3). */
  challenge?: string;
}

export const PUBLIC_ERRORS: Readonly<Record<ErrorCode, PublicError>> = TABLE;
