/** The public codes of the service (contract section 6). */
export const ERROR_CODES = [
  "INVALID_JSON",
  "INVALID_APPLICATIONID",
  "INVALID_CREDENTIALS",
  "NOT_FOUND",
  "UNKNOWN_APPLICATION",
  "UNKNOWN_BADGE",
  "UNKNOWN_INVITATION",
  "METHOD_NOT_ALLOWED",
  "CLAIMED_INVITATION",
  "EXPIRED_INVITATION",
  "REVOKED_INVITATION",
  "PAYLOAD_TOO_LARGE",
  "UNDEFINED_APPLICATIONID",
  "UNDEFINED_UDID",
  "UNDEFINED_USERID",
  "UNDEFINED_BASE64",
  "UNDEFINED_EXPIRESAT",
  "INVALID_UDID",
  "INVALID_USERID",
  "INVALID_METADATA",
  "INVALID_BASE64",
  "INVALID_EXPIRESAT",
  "INVALID_INVITATIONTOKEN",
  "INVALID_PER_PAGE",
  "INVALID_CURSOR",
  "RATE_LIMITED",
  "INTERNAL_ERROR",
  "NUMBERS_EXHAUSTED",
  "UNAVAILABLE",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

const isErrorCode = (text: string): text is ErrorCode => ERROR_CODES.some((code) => code === text);

/** An answer that does not grant what was asked. */
export class BadgeServiceError extends Error {
  override readonly name = "BadgeServiceError";
  /** HTTP status. */
  readonly status: number;
  /**
   * Why, in the contract's words. Null when the answer is none that this client knows: a proxy's error page, a hotel
   * network's log-in page, a code of a newer service.
   */
  readonly code: ErrorCode | null;
  /** What the service's log calls the request: give it to whoever runs the service. */
  readonly requestId: string | null;
  /** When to ask again, in seconds from the answer; null when it does not say. */
  readonly retryAfterSeconds: number | null;

  constructor(answer: {
    status: number;
    /** The `error` of the body, whatever it is. */
    error: unknown;
    requestId: string | null;
    retryAfterSeconds: number | null;
  }) {
    const { status, error, requestId, retryAfterSeconds } = answer;
    const word = typeof error === "string" && /^[A-Z][A-Z0-9_]{0,63}$/.test(error) ? error : null;
    super(`${status} ${word ?? "not an answer of the badge service"}${requestId === null ? "" : ` (${requestId})`}`);
    this.status = status;
    this.code = word !== null && isErrorCode(word) ? word : null;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/**
 * No answer came: no network, no such host, a connection that broke, or the time was over. Whether the service did what
 * was asked is not known. `cause` says what the runtime said.
 */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";

  constructor(cause: unknown) {
    super("the badge service did not answer", { cause });
  }
}
