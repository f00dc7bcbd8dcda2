import {
  PLATFORM_DEADLINE_MILLISECONDS,
  PLATFORM_RETRY_BASE_MILLISECONDS,
  PLATFORM_TRIES,
} from "../shared/limits/platform-limits.ts";
import { isRetryable } from "../shared/retryable.ts";

/**
 * A dependency (D1, an object, a queue) failed despite retries, or exceeded its deadline. The caller may retry: a write takes
 * effect completely or not at all, perhaps later, and its repetition finds the result.
 */
export class Unavailable extends Error {
  constructor(dependency: string, cause: unknown) {
    super(`${dependency} is unavailable`, { cause });
    this.name = "Unavailable";
  }
}

/**
 * Makes an idempotent call up to three times, with full jitter in between, until the deadline. It does not retry
 * overload, which retries would increase.
 *
 * @param deadlineMilliseconds for all tries together
 * @param mayRetry whether an error is worth another try
 * @throws Unavailable
 */
export function retryPlatform<T>(
  dependency: string,
  call: () => Promise<T>,
  deadlineMilliseconds: number = PLATFORM_DEADLINE_MILLISECONDS,
  mayRetry: (error: unknown) => boolean = isRetryable,
): Promise<T> {
  return withDeadline(dependency, deadlineMilliseconds, async (hasTimedOut) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await call();
      } catch (error) {
        if (attempt >= PLATFORM_TRIES || !mayRetry(error)) throw new Unavailable(dependency, error);
        await scheduler.wait(Math.random() * PLATFORM_RETRY_BASE_MILLISECONDS * 2 ** attempt);
        if (hasTimedOut()) throw new Unavailable(dependency, error);
      }
    }
  });
}

/** Makes a call once. @throws Unavailable if it fails or exceeds the deadline */
export const callOnce = <T>(dependency: string, call: () => Promise<T>): Promise<T> =>
  retryPlatform(dependency, call, PLATFORM_DEADLINE_MILLISECONDS, () => false);

/**
 * Resolves or rejects with `work`, and rejects at the deadline: D1 calls have been seen to hang for minutes. Work
 * cannot be cancelled, so a later result is ignored.
 *
 * @param work can ask `hasTimedOut` whether the deadline has passed
 * @throws Unavailable at the deadline
 */
export function withDeadline<T>(
  dependency: string,
  milliseconds: number,
  work: (hasTimedOut: () => boolean) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let hasTimedOut = false;
    const timer = setTimeout(() => {
      hasTimedOut = true;
      reject(new Unavailable(dependency, new Error(`${dependency} did not respond within ${milliseconds} ms`)));
    }, milliseconds);
    work(() => hasTimedOut).then(
      (result) => {
        clearTimeout(timer);
        resolve(result);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
