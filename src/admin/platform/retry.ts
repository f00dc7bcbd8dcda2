import { setTimeout as wait } from "node:timers/promises";

/**
 * What D1 says when a statement may be sent again. The first two come up locally, where this script and the service
 * share a file; the others are of the deployed database.
 */
const RETRYABLE = [
  "SQLITE_BUSY",
  "database is locked",
  "Network connection lost",
  "storage caused object to be reset",
  "reset because its code was updated",
  "Cannot resolve D1 DB due to transient issue",
];

const TRIES = 12;
const FIRST_WAIT_MILLISECONDS = 40;
const LONGEST_WAIT_MILLISECONDS = 1000;

/** Repeats a step that may be repeated, with full jitter in between, for about five seconds. */
export async function retryDatabase<T>(step: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await step();
    } catch (error) {
      if (attempt === TRIES || !isRetryable(error)) throw error;
      const longest = Math.min(LONGEST_WAIT_MILLISECONDS, FIRST_WAIT_MILLISECONDS * 2 ** attempt);
      await wait(Math.random() * longest);
    }
  }
}

function isRetryable(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { message } = cause;
    if (RETRYABLE.some((text) => message.includes(text))) return true;
  }
  return false;
}
