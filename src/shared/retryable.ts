/**
 * Messages of local locks, where the administration script and the service share a file: "internal error" is a lock at
 * the end of a transaction.
 */
const LOCKED = ["SQLITE_BUSY", "database is locked", "internal error"];

/** Messages of D1 errors after which a statement may be repeated (D1 documentation, "Debug D1: retry"). */
const RETRYABLE = [
  "Network connection lost",
  "storage caused object to be reset",
  "reset because its code was updated",
  "Cannot resolve D1 DB due to transient issue",
  ...LOCKED,
];

/**
 * Whether an idempotent call of the platform may be repeated. Overload is not retried, because retries would increase
 * it. Durable Objects mark errors with `retryable` and `overloaded`; D1 has only its messages.
 */
export function isRetryable(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("overloaded" in cause && cause.overloaded === true) return false;
    if ("retryable" in cause && cause.retryable === true) return true;
    const { message } = cause;
    if (RETRYABLE.some((text) => message.includes(text))) return true;
  }
  return false;
}

/** Whether the local database was locked. A deployed D1 retries reads itself (D1: Retry queries); the local one does not. */
export function isLocked(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { message } = cause;
    if (LOCKED.some((text) => message.includes(text))) return true;
  }
  return false;
}

/** Whether the platform reports overload. */
export function isOverloaded(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (("overloaded" in cause && cause.overloaded === true) || cause.message.includes("overloaded")) return true;
  }
  return false;
}
