/**
 * Every number of the design, with its unit in its name. Where the contract sets a number, its section is named. The other
 * numbers are our choice; platform limits that bound them are named.
 */

// Badge numbers (contract section 1)
/** Largest badge number: 2^53 - 1, the largest integer that every JSON parser reads exactly. */
export const MAX_BADGE_NUMBER = Number.MAX_SAFE_INTEGER;
/** First number of the first default range. */
export const FIRST_DEFAULT_NUMBER = 1_000_000_000;
/** Numbers in a default range. */
export const DEFAULT_RANGE_SIZE = 10_000_000;

// Homes (contract section 17)
/** What one D1 holds (D1: Limits). */
export const MAX_DATABASE_BYTES = 10_000_000_000;
/** How old a registration of numbers must be before it may be cleared, if its application does not exist. */
export const UNUSED_REGISTRATION_HOURS = 24;

// Requests (contract section 7)
export const MAX_BODY_BYTES = 16 * 1024;
export const MAX_UDID_CHARACTERS = 255;
export const MAX_USER_ID_CHARACTERS = 255;
export const MAX_METADATA_CHARACTERS = 256;
export const MAX_CLIENT_SIGNATURE_BYTES = 4096;
export const MAX_DATE_TIME_CHARACTERS = 40;
/** How much of a rejected body is read, and for how long, so that the connection stays usable. */
export const MAX_DRAINED_BYTES = 16 * 1024 * 1024;
export const MAX_DRAIN_MILLISECONDS = 2000;
/** As in `[[ratelimits]]` of wrangler.toml, which the platform enforces; these are for the reference. */
export const DEVICE_CALLS_PER_MINUTE = 60;
export const CLIENT_IP_CALLS_PER_MINUTE = 1200;
export const REFUSED_CALLS_PER_MINUTE = 120;
/** How long caches may keep a public response: the key set, the reference (contract sections 3 and 11). */
export const PUBLIC_CACHE_SECONDS = 300;

// Pages (contract section 4)
export const DEFAULT_PER_PAGE = 100;
export const MAX_PER_PAGE = 1000;

// The life of a badge (contract sections 12 and 15)
/** Longest a badge's end lies ahead (contract section 12). */
export const MAX_BADGE_DAYS = 3650;
/** How often a step is decided and written before it fails, if concurrent calls change the badge each time. */
export const MAX_STEP_ATTEMPTS = 25;
/** Badges of a blocked user that one transaction revokes. */
export const BLOCK_CHUNK_BADGES = 500;
/** As `MAX_STEP_ATTEMPTS`, for a login that binds a badge to a key. */
export const MAX_LOGIN_ATTEMPTS = 5;

// Invitations (contract section 5)
export const MAX_INVITATION_DAYS = 365;
export const MAX_IDEMPOTENCY_KEY_CHARACTERS = 255;
/** How often a claim is decided and written before it fails, if concurrent requests change what it read each time. */
export const MAX_CLAIM_ATTEMPTS = 5;

// Secrets (contract section 19)
/** Secrets for people that an application has at most, besides the two of its server. */
export const MAX_CONSOLE_SECRETS = 50;

// Caches of one isolate
/**
 * Maximum age of a cached application. `key rotate --now` takes effect within 30 s (contract section 10), and by then every
 * isolate must know the key; the difference is for slow clocks.
 */
export const APPLICATION_CACHE_SECONDS = 20;
/**
 * Maximum age of a cached application on which a denial may rest: an administrator may just have enabled the application,
 * or stopped requiring its secret.
 */
export const DENIAL_CACHE_MILLISECONDS = 1000;
export const MAX_CACHED_APPLICATIONS = 500;
/** Unknown application IDs have their own cache, so that guesses cannot evict applications. */
export const MAX_CACHED_UNKNOWN_APPLICATIONS = 2000;
export const MAX_CACHED_WRONG_SECRETS = 2000;
/** Client addresses whose refused calls an isolate counts. */
export const MAX_CACHED_CLIENT_ADDRESSES = 2000;
/** Opened keys of each kind: signing keys, device keys, and webhook keys of each digest. */
export const MAX_CACHED_KEYS = 1000;

// The cache of a data centre
/** Longest that the platform's cache may take: without it a key set or a list is only built anew. */
export const CACHE_DEADLINE_MILLISECONDS = 500;
/**
 * Maximum age of a key set from the cache. As that of a cached application, so that no copy is without a new key when that key
 * begins to sign (`URGENT_KEY_DELAY_SECONDS`).
 */
export const KEY_SET_CACHE_SECONDS = 20;

// Status lists (contract section 14)
/** Badges of one list. */
export const STATUS_LIST_ENTRIES = 2 ** 17;
export const STATUS_BITS = 2;
/** How long a door may use a list before it asks for a newer one (`ttl`), and caches may keep it. */
export const STATUS_LIST_TTL_SECONDS = 60;
export const DEFAULT_STATUS_LIFETIME_SECONDS = 24 * 3600;
/** A list that ends sooner would have ended before doors ask for the next. */
export const MIN_STATUS_LIFETIME_SECONDS = STATUS_LIST_TTL_SECONDS;
/** Maximum age of a copy that is sent. The contract allows 30 s; the difference is for slow clocks and slow reads. */
export const STATUS_LIST_CACHE_SECONDS = 20;
/**
 * While more badges than this still fit into the last list, the next one is not begun within `STATUS_LIST_CACHE_SECONDS`: an
 * object serves about 1,000 calls a second (Durable Objects: Limits).
 */
export const STATUS_LIST_ROOM = 2 ** 15;
/** A list takes 60 KB at most. */
export const MAX_CACHED_STATUS_LISTS = 100;
/** Each takes 10 KB at most. */
export const MAX_CACHED_STATUS_INDEXES = 500;
/** How long a request lets another one build a list before it builds that itself. */
export const STATUS_LIST_WAIT_MILLISECONDS = 2000;
/** How long it waits before it looks first; then twice as long each time, up to the next constant. */
export const STATUS_LIST_FIRST_POLL_MILLISECONDS = 10;
export const STATUS_LIST_MAX_POLL_MILLISECONDS = 100;

// Leases of numbers
/** Age at which an unconfirmed lease is settled against D1. */
export const LEASE_RECLAIM_SECONDS = 3600;
/**
 * The same when the range is exhausted. No request can still be under way by then: the Worker gives up after 10 s, a group
 * in the object waits for the previous one and makes two round trips itself (40 s), and D1 has been seen to execute a call
 * up to 80 s late. This is more than twice their sum.
 */
export const LEASE_SETTLE_SECONDS = 300;
/** Shortest time to an object's next alarm, so that leases due shortly after each other share one. */
export const MIN_ALARM_SECONDS = 60;
/**
 * How long after a call has arrived an object still reports a reservation. Later the Worker may have given up: its deadline
 * is `PLATFORM_DEADLINE_MILLISECONDS`, and the difference is for the network.
 */
export const RESERVATION_DEADLINE_MILLISECONDS = 8000;
/** Leases looked up in D1 by one statement when reclaiming. */
export const RECLAIM_CHUNK_LEASES = 500;
/** Maximum freed numbers that one lease moves between tables. A release adds only one, so backlogs shrink. */
export const FREED_CHUNK_NUMBERS = 100;
/** Maximum fresh numbers that one lease skips because they lie beyond the range. */
export const BEYOND_CHUNK_NUMBERS = 500;
/** Used shares of a range, in percent, at which a warning is logged. */
export const RANGE_WARNING_PERCENTS = [99, 90] as const;
/** Numbers of each kind, ready and fresh, that one query looks up after D1 turned out to have a leased number. */
export const SKIP_CHUNK_NUMBERS = 500;
/** Maximum badges that one group commit writes. */
export const MAX_GROUP_BADGES = 100;
/** How many numbers are tried for one request if D1 already has them. */
export const MAX_LEASE_ATTEMPTS = 10;

// Signing keys (contract section 10)
/**
 * How long a new signing key is published before new badges get it. A key set may be cached for `PUBLIC_CACHE_SECONDS`, and
 * an isolate or a data centre may serve one that is `APPLICATION_CACHE_SECONDS` old.
 */
export const NEW_KEY_DELAY_SECONDS = 10 * 60;
/** The same for `key rotate --now`, which allows 30 s; before that, an isolate may not know the key. */
export const URGENT_KEY_DELAY_SECONDS = 25;

// Proofs of bound badges (contract section 15)
/** Longest `DPoP` header that is read. A proof has some 700 characters; Workers takes headers of 128 KB in all. */
export const MAX_PROOF_CHARACTERS = 4096;
/** A `jti` is required and not remembered, so it needs no least length. */
export const MAX_JTI_CHARACTERS = 256;
/** How far `iat` may be from the service's clock, either way, in a proof without a nonce. */
export const PROOF_WINDOW_SECONDS = 60;
/** How long a nonce may be used. */
export const NONCE_LIFETIME_SECONDS = 300;
/** How long another key may replace a badge's key after `rebind`. */
export const REBIND_WINDOW_HOURS = 24;
/** How far the clock of the machine that gave a nonce may be ahead of the one that checks it. */
export const NONCE_CLOCK_SKEW_SECONDS = 10;

// Verified users (contract section 22)
/** The claim of a user token that contains the user ID, unless the application names another one. */
export const DEFAULT_USER_CLAIM = "sub";
/** Longest `Authorization` header that is read: access tokens of some providers list all groups of a user. */
export const MAX_USER_TOKEN_CHARACTERS = 16 * 1024;
/** How far the issuer's clock may be from the service's, either way. */
export const USER_TOKEN_LEEWAY_SECONDS = 60;
/** Age at which an issuer's keys are fetched again. */
export const ISSUER_KEYS_REFRESH_SECONDS = 10 * 60;
/** How long they are used while the issuer cannot be reached. */
export const ISSUER_KEYS_LIFETIME_SECONDS = 24 * 3600;
/** Shortest time between two fetches for unknown key IDs, and from a failed fetch to the next while keys are known. */
export const ISSUER_PATIENCE_SECONDS = 60;
/** Deadline of a fetch: the discovery document and the key set together. */
export const ISSUER_DEADLINE_MILLISECONDS = 5000;
/** How often a call looks whether another one has fetched the keys. */
export const ISSUER_POLL_MILLISECONDS = 20;
/** Longest discovery document or key set. Those of large providers have some 20 KB. */
export const MAX_ISSUER_DOCUMENT_BYTES = 512 * 1024;
/** Keys of one issuer. */
export const MAX_ISSUER_KEYS = 100;
export const MAX_CACHED_ISSUERS = 500;
/** Badges that `GET /v1/user/badges` lists at most, newest first. */
export const MAX_OWN_BADGES = 1000;
/** Hours of logins that `stats` counts with `--observe`. */
export const OBSERVED_HOURS = 24;
/** Shortest time between two writes of an isolate's counts of one application. */
export const OBSERVED_WRITE_MILLISECONDS = 5000;

// Reads near the caller (contract section 16)
/** Longest that a copy of D1 may take; then the primary is asked. A forged bookmark costs its sender no more than that. */
export const NEAR_DEADLINE_MILLISECONDS = 1000;
/** Maximum age of a copy that may accept a badge. The contract allows 90 s; the difference is for clocks that differ. */
export const MAX_COPY_AGE_SECONDS = 85;
/** How far the clock of the machine that ticked may be ahead of the one that reads. */
export const COPY_CLOCK_SKEW_SECONDS = 5;

// Platform calls
/** Deadline of a round trip to D1 or an object, retries included (contract section 11). */
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
/** Maximum length of a URL, as written and as normalized. */
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
/** How long a claimed event is leased to its sender: an attempt and its recording, with a margin. */
export const DELIVERY_LEASE_SECONDS = 60;
/** A random part of this is added to each lease, by which a claim recognizes its own events. */
export const DELIVERY_LEASE_SPREAD_MILLISECONDS = 10_000;
/** Webhooks that one invocation sends concurrently. At most six connections may wait for a response (Workers: Limits). */
export const MAX_CONNECTIONS_PER_SENDER = 5;
/** Senders that one queue batch calls: an invocation may call 32 others (Service bindings: Limits). */
export const MAX_SENDERS = 30;
/** How long recording an attempt waits for others of the same claim. */
export const COALESCE_MILLISECONDS = 100;
export const MAX_RESPONSE_READ_BYTES = 16 * 1024;
export const MAX_STORED_RESPONSE_BYTES = 1024;
/** An endpoint is held after this long without a success, and at least this many failures. */
export const HOLD_AFTER_SECONDS = 120 * 3600;
export const HOLD_AFTER_ATTEMPTS = 10;

// The sweep
/** Rows that one statement of the sweep takes; of each application where the statement goes by application. */
export const SWEEP_CHUNK_ROWS = 500;
/** Blocks that one chunk finishes, with at least three statements each. */
export const SWEEP_CHUNK_BLOCKS = 20;
/** Duration after which a sweep leaves the rest to the next one, and what each home after the first adds to it. */
export const SWEEP_BUDGET_MILLISECONDS = 20_000;
export const SWEEP_HOME_MILLISECONDS = 250;
/**
 * D1 statements after which a sweep leaves the rest to the next one. D1 allows 1,000 per invocation, where each statement of a
 * batch counts (D1: Limits); the difference is for the chunks that have begun. What is urgent takes six statements a home.
 */
export const MAX_SWEEP_D1_STATEMENTS = 900;
/** How many homes a sweep visits at once. An invocation may wait for six connections (Workers: Limits). */
export const HOMES_SWEPT_AT_ONCE = 4;
/** How long other homes wait for what is urgent in one; then its own goes on beside theirs. */
export const SWEEP_PATIENCE_MILLISECONDS = 3000;
/** Maximum reconciliations that one sweep works on. */
export const MAX_SWEEP_RECONCILIATIONS = 500;
/** Leases or badges that one chunk of a reconciliation checks. */
export const RECONCILE_CHUNK_ROWS = 500;
/** Sealed values of each table that one chunk re-seals: each costs some milliseconds of RSA. */
export const RESEAL_CHUNK_ROWS = 50;
/** How many values that cannot be opened a sweep logs one by one; it counts the rest. */
export const MAX_LOGGED_UNREADABLE = 20;
/** Maximum events that one sweep wakes: of one application, and in all. The local queue takes 10,000 messages at once. */
export const MAX_APPLICATION_WAKE_UPS = 2000;
export const MAX_SWEEP_WAKE_UPS = 5000;
/** How long the sweep waits for a new event's own wake-up before it sends another. */
export const WAKE_UP_GRACE_MILLISECONDS = 2000;
/** Maximum delay of a queue message; later retries are found in D1 by the sweep. */
export const MAX_QUEUE_DELAY_SECONDS = 120;
/** Maximum messages of one `sendBatch` (Queues: Limits). */
export const MAX_QUEUE_BATCH_MESSAGES = 100;

// Statistics (contract section 19)
/** How long an isolate caches an application's statistics: counting reads all of its rows. */
export const STATISTICS_CACHE_SECONDS = 5 * 60;
export const MAX_CACHED_STATISTICS = 500;
export const STATISTICS_DAYS = 90;
/** How many values of a metadata field are counted one by one, most frequent first; devices choose the values. */
export const STATISTICS_VALUES_SHOWN = 15;

// Retention (contract section 18)
/** Defaults of the variables EVENT_RETENTION_DAYS and INVITATION_RETENTION_DAYS in wrangler.toml. */
export const EVENT_RETENTION_DAYS = 30;
export const INVITATION_RETENTION_DAYS = 365;
/** Exhausted and held events are kept this many times as long as delivered ones. */
export const UNDELIVERED_RETENTION_FACTOR = 3;
/** How many of each application's oldest rows every sweep scans; the others are scanned once a day. */
export const RETENTION_OLDEST_ROWS = 20;
