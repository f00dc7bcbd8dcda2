/**
 * Every number of the design, with its unit in its name. A contract section is named where it sets the number; the other
 * numbers are our choice, with the platform's limit beside them.
 */

// Badge numbers (contract section 1)
/** Largest badge number: 2^53 - 1, the largest integer every JSON reader keeps exact. */
export const MAX_BADGE_NUMBER = Number.MAX_SAFE_INTEGER;
/** First number that default ranges use. */
export const FIRST_DEFAULT_NUMBER = 1_000_000_000;
/** Numbers in a default range. */
export const DEFAULT_RANGE_SIZE = 10_000_000;

// Requests (contract section 7)
export const MAX_BODY_BYTES = 16 * 1024;
export const MAX_UDID_CHARACTERS = 255;
export const MAX_USER_ID_CHARACTERS = 255;
export const MAX_METADATA_CHARACTERS = 256;
export const MAX_CLIENT_SIGNATURE_BYTES = 4096;
export const MAX_DATE_TIME_CHARACTERS = 40;
/** How much of an unwanted body is read so that the connection stays usable, and for how long. */
export const MAX_DRAINED_BYTES = 16 * 1024 * 1024;
export const MAX_DRAIN_MILLISECONDS = 2000;
/** The same as `[[ratelimits]]` in wrangler.toml, which is what the platform enforces; the reference shows these. */
export const DEVICE_CALLS_PER_MINUTE = 60;
export const CLIENT_IP_CALLS_PER_MINUTE = 1200;
export const REFUSED_CALLS_PER_MINUTE = 120;
/** How long caches may keep a public response: the key set, the reference (contract sections 3 and 11). */
export const PUBLIC_CACHE_SECONDS = 300;

// Pages (contract section 4)
export const DEFAULT_PER_PAGE = 100;
export const MAX_PER_PAGE = 1000;

// Invitations (contract section 5)
export const MAX_INVITATION_DAYS = 365;
export const MAX_IDEMPOTENCY_KEY_CHARACTERS = 255;
/** Longest a badge's end lies ahead (contract section 12). */
export const MAX_BADGE_DAYS = 3650;
/** How often a step in a badge's life decides again because another call changed the badge meanwhile. */
export const MAX_STEP_ATTEMPTS = 25;
/** Badges of a blocked user that one transaction revokes. */
export const BLOCK_CHUNK_BADGES = 500;
/** How often a claim decides again because another request changed something meanwhile. */
export const MAX_CLAIM_ATTEMPTS = 5;

// Caches of one isolate
/** Maximum age of a cached application. Contract section 9 allows 30 s; the difference is for slow clocks. */
export const APPLICATION_CACHE_SECONDS = 20;
/**
 * Maximum age of a cached application that is used to deny something that an administrator may just have allowed: an
 * application was enabled, a secret is no longer required.
 */
export const DENIAL_CACHE_MILLISECONDS = 1000;
export const MAX_CACHED_APPLICATIONS = 500;
/** Unknown application IDs have a cache of their own, so that guesses cannot evict applications. */
export const MAX_CACHED_UNKNOWN_APPLICATIONS = 2000;
export const MAX_CACHED_WRONG_SECRETS = 2000;
/** Client addresses whose refused calls an isolate counts. */
export const MAX_CACHED_CLIENT_ADDRESSES = 2000;
/** Opened keys of each use: signing, naming devices, and each digest of webhook signatures. */
export const MAX_CACHED_KEYS = 1000;

// Leases of numbers
/** A lease is settled against D1 when its badge was not confirmed for this long. */
export const LEASE_RECLAIM_SECONDS = 3600;
/**
 * The same when the range is exhausted. No request can still be under way by then: the Worker gives up after 10 s, a group
 * in the object waits for the one before it and makes two round trips itself (40 s), and D1 has been seen to execute a
 * call up to 80 s late. This is over twice their sum.
 */
export const LEASE_SETTLE_SECONDS = 300;
/** Shortest time to an object's next alarm, so leases that are due one after the other share one. */
export const MIN_ALARM_SECONDS = 60;
/**
 * How long after a call reached it an object still reports a reservation. Past that the Worker may have given up, whose
 * deadline is `PLATFORM_DEADLINE_MILLISECONDS`; the rest is left to the way there and back.
 */
export const RESERVATION_DEADLINE_MILLISECONDS = 8000;
/** Leases looked up in D1 by one statement when reclaiming. */
export const RECLAIM_CHUNK_LEASES = 500;
/** Freed numbers that one lease moves between tables, at most: a release adds one, so backlogs shrink. */
export const FREED_CHUNK_NUMBERS = 100;
/** Fresh numbers that one lease passes over because they lie beyond the range, at most. */
export const BEYOND_CHUNK_NUMBERS = 500;
/** Shares of a range's numbers that are used when a warning is logged, in percent. */
export const RANGE_WARNING_PERCENTS = [99, 90] as const;
/** Numbers of each kind, ready and fresh, looked up in D1 at once after one that it knows already. */
export const SKIP_CHUNK_NUMBERS = 500;
/** Badges written to D1 by one batch of group commit. */
export const MAX_GROUP_BADGES = 100;
/** How often a lease is retried with another number when D1 has the number already. */
export const MAX_LEASE_ATTEMPTS = 10;

// Signing keys (contract section 10)
/**
 * How long a new signing key is published before new badges get it. Anybody may keep a key set for
 * `PUBLIC_CACHE_SECONDS`, and an isolate may serve one that is `APPLICATION_CACHE_SECONDS` old.
 */
export const NEW_KEY_DELAY_SECONDS = 10 * 60;
/** The same for `key rotate --now`, which allows 30 s: until then an isolate may not know the key. */
export const URGENT_KEY_DELAY_SECONDS = 25;

// Platform calls
/** Longest a round trip to D1 or an object takes, retries included (contract section 11). */
export const PLATFORM_DEADLINE_MILLISECONDS = 10_000;
/** The same for the round trip of `GET /health` (contract section 11). */
export const HEALTH_DEADLINE_MILLISECONDS = 3000;
export const PLATFORM_TRIES = 3;
export const PLATFORM_RETRY_BASE_MILLISECONDS = 50;
/** `Retry-After` of 503 UNAVAILABLE. */
export const UNAVAILABLE_RETRY_SECONDS = 2;
/** `Retry-After` of 429 RATE_LIMITED: the window of the platform's rate-limit binding. */
export const RATE_LIMIT_WINDOW_SECONDS = 60;

// Webhooks (contract section 8)
/** Longest URL, as written and as sent. */
export const MAX_WEBHOOK_URL_CHARACTERS = 2048;
/** Wait after the 1st, 2nd, … failed attempt; 14 attempts in all, over 77 h 36 min without jitter. */
export const RETRY_DELAYS_SECONDS = [
  5,
  60,
  5 * 60,
  30 * 60,
  2 * 3600,
  5 * 3600,
  ...Array.from({ length: 7 }, () => 10 * 3600),
] as const;
/** Maximum jitter added to a delay, as a fraction of it. */
export const RETRY_JITTER = 0.1;
export const MAX_RETRY_AFTER_SECONDS = 10 * 3600;
/** Shortest wait after a 429 or a timeout. */
export const SLOW_RETRY_SECONDS = 60;
export const DELIVERY_TIMEOUT_MILLISECONDS = 15_000;
/** How long a claimed event is hidden from other consumers: an attempt and recording it, with a margin. */
export const DELIVERY_LEASE_SECONDS = 60;
/** A random part of this is added to each lease, by which a claim recognizes its own events. */
export const DELIVERY_LEASE_SPREAD_MILLISECONDS = 10_000;
/** Webhooks that one invocation sends at once. At most six connections may wait for a response (Workers: Limits). */
export const CONNECTIONS_OF_A_SENDER = 5;
/** Senders that one batch of the queue calls: an invocation may call 32 others (Service bindings: Limits). */
export const MAX_SENDERS = 30;
/** How long recording an attempt waits for others of the same claim. */
export const COALESCE_MILLISECONDS = 100;
export const MAX_RESPONSE_READ_BYTES = 16 * 1024;
export const MAX_RESPONSE_KEPT_BYTES = 1024;
/** An endpoint is held after this long without a success, and at least this many failures. */
export const HOLD_AFTER_SECONDS = 120 * 3600;
export const HOLD_AFTER_ATTEMPTS = 10;

// The sweep
/** Rows one statement of the sweep takes; of each application where it asks them one by one. */
export const SWEEP_CHUNK_ROWS = 500;
/** How long one sweep may take before it leaves the rest to the next. */
export const SWEEP_BUDGET_MILLISECONDS = 20_000;
/**
 * Calls of D1 after which a sweep leaves the rest to the next minute. D1 allows 1,000 queries per invocation, each
 * statement of a batch counts as one, and no batch of the sweep has more than four (D1: Limits).
 */
export const MAX_SWEEP_D1_ROUND_TRIPS = 200;
/** Reconciliations that one sweep begins or continues. */
export const MAX_SWEEP_RECONCILIATIONS = 500;
/** Leases or badges that one chunk of a reconciliation looks at. */
export const RECONCILE_CHUNK_ROWS = 500;
/** Sealed values of each table that one chunk re-seals: each costs some milliseconds of RSA. */
export const RESEAL_CHUNK_ROWS = 50;
/** How many values that do not open one sweep logs one by one; it counts the rest. */
export const MAX_LOGGED_UNREADABLE = 20;
/** Most events that one sweep wakes: of one application, and in all. The local queue takes 10,000 messages at once. */
export const MAX_APPLICATION_WAKE_UPS = 2000;
export const MAX_SWEEP_WAKE_UPS = 5000;
/** How long the sweep waits for a new event's own wake-up before it sends another. */
export const WAKE_UP_GRACE_MILLISECONDS = 2000;
/** The longest delay of a queue message; the sweep finds later retries in D1. */
export const MAX_QUEUE_DELAY_SECONDS = 120;
/** Most messages one `sendBatch` takes (Queues limit). */
export const MAX_QUEUE_BATCH_MESSAGES = 100;

// Statistics (contract section 19)
/** How long an isolate keeps the statistics of an application: counting reads all its rows. */
export const STATISTICS_CACHE_SECONDS = 5 * 60;
export const MAX_CACHED_STATISTICS = 500;
export const STATISTICS_DAYS = 90;
/** Values of a metadata field beyond the most frequent ones are counted together: devices choose them. */
export const STATISTICS_VALUES_SHOWN = 15;

// Retention (contract section 18)
/** What the variables EVENT_RETENTION_DAYS and INVITATION_RETENTION_DAYS of wrangler.toml change. */
export const EVENT_RETENTION_DAYS = 30;
export const INVITATION_RETENTION_DAYS = 365;
/** How much longer than delivered events exhausted and held ones are kept. */
export const UNDELIVERED_RETENTION_FACTOR = 3;
/** Oldest rows of each application that every sweep looks at; the others are looked at once a day. */
export const RETENTION_FIRST_LOOK_ROWS = 20;
