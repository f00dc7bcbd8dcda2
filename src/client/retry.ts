import { BadgeServiceError, NoAnswerError } from "./errors.ts";

/** Longest wait before the first repetition; it doubles with each further one. */
export const BACK_OFF_BASE_MILLISECONDS = 250;
export const BACK_OFF_CAP_MILLISECONDS = 8_000;

/**
 * When a call may be repeated. `always`: the service finds it already done the second time. `if-refused`: it would be
 * done twice, so only after the service has refused it before doing anything. UNAVAILABLE does not say that: a part of
 * the platform failed, before or after it did its work.
 */
export type Repeatable = "always" | "if-refused";

/**
 * Decides what follows a failed try.
 *
 * @param failure.tries tries made so far, from 1
 * @param failure.longestWaitSeconds a longer `Retry-After` is the caller's to wait for
 * @param failure.random in [0, 1): full jitter, so that what failed together does not come back together
 * @returns milliseconds to wait before the next try, or null to give up
 */
export function waitBeforeRetry(failure: {
  error: unknown;
  repeatable: Repeatable;
  tries: number;
  maxTries: number;
  longestWaitSeconds: number;
  random: number;
}): number | null {
  const { error, repeatable, tries, maxTries, longestWaitSeconds, random } = failure;
  if (tries >= maxTries || !mayRepeat(error, repeatable)) return null;
  const asked = error instanceof BadgeServiceError ? (error.retryAfterSeconds ?? 0) : 0;
  if (asked > longestWaitSeconds) return null;
  const ceiling = Math.min(BACK_OFF_CAP_MILLISECONDS, BACK_OFF_BASE_MILLISECONDS * 2 ** (tries - 1));
  return asked * 1000 + Math.floor(random * ceiling);
}

function mayRepeat(error: unknown, repeatable: Repeatable): boolean {
  if (error instanceof NoAnswerError) return repeatable === "always";
  if (!(error instanceof BadgeServiceError)) return false;
  if (error.code === "RATE_LIMITED") return true;
  if (repeatable === "if-refused") return false;
  // Whatever stands in front of the service may refuse for it, or fail when the service has done its work already.
  const isFromBetween = error.code === null && (error.status === 429 || error.status >= 500);
  // NUMBERS_EXHAUSTED is a 503 too, but time does not help it: it has no `Retry-After` (contract section 6).
  return isFromBetween || (error.code === "UNAVAILABLE" && error.retryAfterSeconds !== null);
}
