import { PLATFORM_DEADLINE_MILLISECONDS, PLATFORM_RETRY_BASE_MILLISECONDS, PLATFORM_TRIES } from "../shared/limits.ts";
import { isRetryable } from "../shared/retryable.ts";

/**
 * A part of the platform failed despite retries, or did not respond in time. The caller may try again: a write takes
 * effect completely or not at all, perhaps later, and repeating it finds what was written.
 */
export class Unavailable extends Error {
  readonly part: string;

  /** @param part its name in the log */
  constructor(part: string, cause: unknown) {
    super(`${part} is unavailable`, { cause });
    this.name = "Unavailable";
    this.part = part;
  }
}

/**
 * Makes an idempotent call up to three times, with full jitter in between, until the deadline. Overload is never retried,
 * because that would increase it.
 *
 * @param deadlineMilliseconds for all tries together
 * @throws Unavailable
 */
export function retryPlatform<T>(
  part: string,
  call: () => Promise<T>,
  deadlineMilliseconds: number = PLATFORM_DEADLINE_MILLISECONDS,
): Promise<T> {
  return withDeadline(part, deadlineMilliseconds, async (isOver) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await call();
      } catch (error) {
        if (attempt >= PLATFORM_TRIES || !isRetryable(error)) throw new Unavailable(part, error);
        await scheduler.wait(Math.random() * PLATFORM_RETRY_BASE_MILLISECONDS * 2 ** attempt);
        if (isOver()) throw new Unavailable(part, error);
      }
    }
  });
}

/**
 * Settles as the work does, or rejects at the deadline: D1 calls have been seen to hang for minutes. Work cannot be
 * cancelled; after the deadline its result is ignored.
 *
 * @param work can ask `isOver` whether the deadline has passed
 * @throws Unavailable at the deadline
 */
export function withDeadline<T>(
  part: string,
  milliseconds: number,
  work: (isOver: () => boolean) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      reject(new Unavailable(part, new Error(`${part} did not respond within ${milliseconds} ms`)));
    }, milliseconds);
    work(() => isOver).then(
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
