import { PLATFORM_DEADLINE_MILLISECONDS, PLATFORM_RETRY_BASE_MILLISECONDS, PLATFORM_TRIES } from "../shared/limits.ts";

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
 * Messages of D1 errors that may be retried (D1 documentation, "Debug D1: retry"). The last three occur locally, where
 * the administration script and the service share a file: "internal error" is a lock at the end of a transaction.
 */
const RETRYABLE = [
  "Network connection lost",
  "storage caused object to be reset",
  "reset because its code was updated",
  "Cannot resolve D1 DB due to transient issue",
  "SQLITE_BUSY",
  "database is locked",
  "internal error",
];

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

/** Durable Objects mark errors with `retryable` and `overloaded`; D1 has only its messages. */
function isRetryable(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("overloaded" in cause && cause.overloaded === true) return false;
    if ("retryable" in cause && cause.retryable === true) return true;
    const { message } = cause;
    if (RETRYABLE.some((text) => message.includes(text))) return true;
  }
  return false;
}
