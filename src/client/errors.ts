import { type CodeOfStatus, type ErrorCode, PUBLIC_ERRORS } from "../shared/error-table.ts";
import { remedyFor } from "./remedies.ts";

export type { ErrorCode };

/** Every code of the service, once (contract section 6). */
export const ERROR_CODES: readonly ErrorCode[] = Object.keys(PUBLIC_ERRORS).filter(isErrorCode);

function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(PUBLIC_ERRORS, text);
}

/** The response is not the requested result. */
export class BadgeServiceError extends Error {
  override readonly name = "BadgeServiceError";
  /** HTTP status. */
  readonly status: number;
  /**
   * The service's reason. Null if the response does not come from the service (a proxy's error page, the log-in page of a
   * hotel network) or has a code of a newer version.
   */
  readonly code: ErrorCode | null;
  /** Identifies the request in the service's log; quote it when you report a problem. */
  readonly requestId: string | null;
  /** From `Retry-After`: seconds to wait, counted from the response; null without one. */
  readonly retryAfterSeconds: number | null;

  constructor(response: {
    status: number;
    /** The body's `error`, of any type. */
    error: unknown;
    requestId: string | null;
    retryAfterSeconds: number | null;
  }) {
    const { status, error, requestId, retryAfterSeconds } = response;
    const code = typeof error === "string" && /^[A-Z][A-Z0-9_]{0,63}$/.test(error) ? error : null;
    const suffix = requestId === null ? "" : ` (${requestId})`;
    super(`${status} ${code ?? "not a response of the badge service"}${suffix}: ${remedyFor(code)}`);
    this.status = status;
    this.code = code !== null && isErrorCode(code) ? code : null;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/**
 * The reasons why a user device gets neither its badge nor a signature: every code of 403 except those of people's and
 * doors' secrets.
 */
export type RefusedBadgeCode = Exclude<CodeOfStatus<403>, "READ_ONLY" | "DOOR_ONLY">;

/** An error to tell the user about. The compiler checks a `switch` over its `code`. */
export interface RefusedBadgeError extends BadgeServiceError {
  readonly code: RefusedBadgeCode;
}

/** Whether the service refused a device call because the badge is not active or the user is blocked. */
export function isRefusedBadge(error: unknown): error is RefusedBadgeError {
  if (!(error instanceof BadgeServiceError) || error.code === null) return false;
  if (error.code === "READ_ONLY" || error.code === "DOOR_ONLY") return false;
  return PUBLIC_ERRORS[error.code].status === 403;
}

/**
 * Whether the service needs a user token, or a different one. If so, have the identity provider's library refresh it, or let
 * the user log in again; then call once more.
 */
export function isRefusedUserToken(
  error: unknown,
): error is BadgeServiceError & { readonly code: "INVALID_USERTOKEN" } {
  return error instanceof BadgeServiceError && error.code === "INVALID_USERTOKEN";
}

/**
 * Whether `changes` cannot continue from this cursor, because the service has lost changes or numbers. Then start again
 * without a cursor, and delete the badges that this walk does not return (contract section 13).
 */
export function isExpiredCursor(error: unknown): error is BadgeServiceError & { readonly code: "EXPIRED_CURSOR" } {
  return error instanceof BadgeServiceError && error.code === "EXPIRED_CURSOR";
}

/**
 * The badge of this user device is bound to another key than this client's, or to none although `requireBound` is set. It is not
 * this phone's: somebody else who knows the udid requested it first, or the app has lost the key that it was bound to.
 */
export class KeyMismatchError extends Error {
  override readonly name = "KeyMismatchError";
  readonly badgeId: string;
  /** RFC 7638 thumbprint of the key that the badge is bound to; null if unbound. */
  readonly keyThumbprint: string | null;

  constructor(badgeId: string, keyThumbprint: string | null) {
    const binding = keyThumbprint === null ? "not bound to a key" : "bound to another key than this client's";
    super(`badge ${badgeId} is ${binding}: ask the application's server to rebind it (rebindBadge), then log in again`);
    this.badgeId = badgeId;
    this.keyThumbprint = keyThumbprint;
  }
}

/**
 * There was no response: no network, unknown host, broken connection, or timeout. The call may or may not have taken
 * effect. `cause` is the runtime's error.
 */
export class NoResponseError extends Error {
  override readonly name = "NoResponseError";

  constructor(cause: unknown) {
    super("no response from the badge service: is there a network, and is baseUrl right? Call again, it is safe", {
      cause,
    });
  }
}
