import { PLATFORM_RETRY_BASE_MILLISECONDS, PLATFORM_TRIES } from "./limits.ts";

/** A part of the platform did not do its work, after retries. The caller may try again; nothing was half done. */
export class Unavailable extends Error {
  readonly part: string;

  /** @param part which one, for the log */
  constructor(part: string, cause: unknown) {
    super(`${part} is unavailable`, { cause });
    this.name = "Unavailable";
    this.part = part;
  }
}

/**
 * What D1 says when a statement may be sent again (D1 documentation, "Debug D1: retry"). The last three come up locally,
 * where the administration script and the service share a file: "internal error" is a lock at the end of a transaction.
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
 * Tries a call that can be repeated up to three times, with full jitter in between. Overload is never retried: it would
 * add to it.
 *
 * @throws Unavailable
 */
export async function retryPlatform<T>(part: string, call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (attempt >= PLATFORM_TRIES || !isRetryable(error)) throw new Unavailable(part, error);
      await scheduler.wait(Math.random() * PLATFORM_RETRY_BASE_MILLISECONDS * 2 ** attempt);
    }
  }
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
