/** Capacity of a D1, and deadlines of calls to the platform. */

// Homes (contract section 17)
/** Capacity of one D1 (D1: Limits). */
export const MAX_DATABASE_BYTES = 10_000_000_000;
/** Share of that, in percent, from which `home-fills-up` is logged and the script's doctor warns. */
export const HOME_WARNING_PERCENT = 70;
/** Least age of a registration that may be cleared, if its application does not exist. */
export const UNUSED_REGISTRATION_HOURS = 24;

// Platform calls
/** Deadline of a round trip to D1 or an object, retries included (contract section 11). */
export const PLATFORM_DEADLINE_MILLISECONDS = 10_000;
/** The same for the round trip of `GET /health` (contract section 11). */
export const HEALTH_DEADLINE_MILLISECONDS = 3000;
/** How long an isolate reuses the last result of a health check (contract section 7). */
export const HEALTH_CACHE_MILLISECONDS = 1000;
/** Interval in which a health check polls for the result of a running one. */
export const HEALTH_POLL_MILLISECONDS = 20;
export const PLATFORM_TRIES = 3;
export const PLATFORM_RETRY_BASE_MILLISECONDS = 50;
/** `Retry-After` of 503 UNAVAILABLE. */
export const UNAVAILABLE_RETRY_SECONDS = 2;
/** `Retry-After` of 429 RATE_LIMITED: the window of the platform's rate-limit binding. */
export const RATE_LIMIT_WINDOW_SECONDS = 60;
