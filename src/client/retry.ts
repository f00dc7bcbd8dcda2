import { BadgeServiceError, NoResponseError } from "./errors.ts";

/** Upper bound of the wait before the first retry. It doubles with every further retry, up to the cap. */
const BACK_OFF_BASE_MILLISECONDS = 250;
const BACK_OFF_CAP_MILLISECONDS = 8_000;

/**
 * Decides what to do after a failed try. Nearly every call is safe to repeat: it returns what the first try created, or sets the
 * same state again.
 *
 * @param failure.tries tries made so far, from 1
 * @param failure.maxRetryAfterSeconds a longer `Retry-After` is left to the caller
 * @param failure.isRepeatable false: repeat the call only if the failed try certainly changed nothing
 * @param failure.random in [0, 1): full jitter, so that clients that failed together do not retry together
 * @returns milliseconds to wait before the next try, or null to give up
 */
export function waitBeforeRetry(failure: {
  error: unknown;
  tries: number;
  maxTries: number;
  maxRetryAfterSeconds: number;
  random: number;
  isRepeatable: boolean;
}): number | null {
  const { error, tries, maxTries, maxRetryAfterSeconds, random, isRepeatable } = failure;
  if (tries >= maxTries || !isTemporary(error)) return null;
  if (!isRepeatable && !isWithoutEffect(error)) return null;
  const retryAfterSeconds = error instanceof BadgeServiceError ? (error.retryAfterSeconds ?? 0) : 0;
  if (retryAfterSeconds > maxRetryAfterSeconds) return null;
  const ceiling = Math.min(BACK_OFF_CAP_MILLISECONDS, BACK_OFF_BASE_MILLISECONDS * 2 ** (tries - 1));
  return retryAfterSeconds * 1000 + Math.floor(random * ceiling);
}

function isTemporary(error: unknown): boolean {
  if (error instanceof NoResponseError) return true;
  if (!(error instanceof BadgeServiceError)) return false;
  // A proxy may refuse on its own, or fail after the service has done its work.
  if (error.code === null) return error.status === 429 || error.status >= 500;
  // NUMBERS_EXHAUSTED is a 503 too, but waiting does not help: it has no `Retry-After` (contract section 6).
  return error.code === "RATE_LIMITED" || (error.code === "UNAVAILABLE" && error.retryAfterSeconds !== null);
}

/** Whether the service itself refused the call before it did anything. */
const isWithoutEffect = (error: unknown): boolean =>
  error instanceof BadgeServiceError && error.code === "RATE_LIMITED";
