import { type ErrorCode, PUBLIC_ERRORS } from "../shared/error-table.ts";

export type { ErrorCode };

/** Every code of the service, once (contract section 6). */
export const ERROR_CODES: readonly ErrorCode[] = [...new Set(Object.values(PUBLIC_ERRORS).map(({ code }) => code))];

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
