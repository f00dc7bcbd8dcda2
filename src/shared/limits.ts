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
/** Capacity of one D1 (D1: Limits). */
export const MAX_DATABASE_BYTES = 10_000_000_000;
/** Share of that, in percent, from which `home-fills-up` is logged and the script's doctor warns. */
export const HOME_WARNING_PERCENT = 70;
/** Least age of a registration that may be cleared, if its application does not exist. */
export const UNUSED_REGISTRATION_HOURS = 24;

// Requests (contract section 7)
export const MAX_BODY_BYTES = 16 * 1024;

/** The body of `POST /v1/invitations`, and the invitations in it (contract section 24). */
export const MAX_INVITATIONS_BODY_BYTES = 256 * 1024;
export const MAX_INVITATIONS = 100;

/** Names of visitors, of actors and of console secrets; reasons (contract sections 23 and 24). */
export const MAX_NAME_CHARACTERS = 100;
export const MAX_REASON_CHARACTERS = 500;

export const MAX_UDID_CHARACTERS = 255;
export const MAX_USER_ID_CHARACTERS = 255;
/** UTF-8. The user ID is in several indexes, so its bytes count many times in D1. */
export const MAX_USER_ID_BYTES = 512;
export const MAX_METADATA_CHARACTERS = 256;
/** UTF-8, of all fields together. */
export const MAX_METADATA_BYTES = 1024;
export const MAX_CLIENT_SIGNATURE_BYTES = 4096;
export const MAX_DATE_TIME_CHARACTERS = 40;
/** Years of a date-time, as it is written and in UTC. */
export const MIN_YEAR = 1970;
export const MAX_YEAR = 9999;
/** Bytes of a rejected body that are read, and the time for it, so that the connection stays usable. */
export const MAX_DRAINED_BYTES = 16 * 1024 * 1024;
export const MAX_DRAIN_MILLISECONDS = 2000;
/** As in `[[ratelimits]]` of wrangler.toml, which the platform enforces; these are for the reference. */
export const DEVICE_CALLS_PER_MINUTE = 60;
export const CLIENT_IP_CALLS_PER_MINUTE = 1200;
export const REFUSED_CALLS_PER_MINUTE = 120;
/** Fresh numbers that new badges and invitations without the secret take in a clock hour, unless an administrator sets another limit. */
export const DEFAULT_NEW_BADGES_PER_HOUR = 10_000;
/** How long caches may keep a public response: the key set, the reference (contract sections 3 and 11). */
export const PUBLIC_CACHE_SECONDS = 300;

// Pages (contract section 4)
export const DEFAULT_PER_PAGE = 100;
export const MAX_PER_PAGE = 1000;

// Filtered lists (contract section 24)
/** A page of a filter reads at most this many rows for each item that fits on it, and these besides. */
export const MAX_ROWS_PER_ITEM = 10;
export const MAX_ROWS_PER_PAGE = 1000;
export const MIN_SEARCH_CHARACTERS = 2;
/** Letters of a search beyond ASCII that differ by case: each takes two of D1's 100 parameters. */
export const MAX_CASED_LETTERS = 40;

// The life of a badge (contract sections 12 and 15)
/** Longest time until a badge's end. */
export const MAX_BADGE_DAYS = 3650;

// Invitations (contract section 5)
export const MAX_INVITATION_DAYS = 365;
export const MAX_IDEMPOTENCY_KEY_CHARACTERS = 255;

// Secrets (contract section 19)
/** Maximum of an application's secrets for people, besides the two of its server. */
export const MAX_CONSOLE_SECRETS = 50;
/** Maximum of an application's door secrets (contract section 26). */
export const MAX_DOOR_SECRETS = 5000;

// Caches of one isolate
/**
 * Maximum age of a cached application. `key rotate --now` takes effect within 30 s (contract section 10), and by then every
 * isolate must know the key; the difference is for slow clocks.
 */
export const APPLICATION_CACHE_SECONDS = 20;
/**
 * Maximum age of a cached application that a refusal may use: an administrator may just have enabled the application,
 * or stopped requiring its secret.
 */
export const DENIAL_CACHE_MILLISECONDS = 1000;
export const MAX_CACHED_APPLICATIONS = 500;
/** Unknown application IDs have their own cache, so that guesses cannot evict applications. */
export const MAX_CACHED_UNKNOWN_APPLICATIONS = 2000;
export const MAX_CACHED_WRONG_SECRETS = 2000;
/**
 * Application IDs of one home that an isolate reads, to distinguish them from guesses of an address over its limit. One
 * statement; it is read again after `APPLICATION_CACHE_SECONDS`.
 */
export const MAX_KNOWN_APPLICATIONS = 10_000;
/** Interval in which a call polls whether another call has read them. */
export const KNOWN_APPLICATIONS_POLL_MILLISECONDS = 20;
/** Client addresses whose refused calls an isolate counts. */
export const MAX_CACHED_CLIENT_ADDRESSES = 2000;
/** Opened keys of each kind: signing keys, root keys, and webhook keys of each digest. */
export const MAX_CACHED_KEYS = 1000;

// The cache of a data centre
/** Deadline of the platform's cache; without it a key set or a list is built again. */
export const CACHE_DEADLINE_MILLISECONDS = 500;
/** Maximum age of a cached key set, because `key rotate` publishes the new key at once (contract section 10). */
export const KEY_SET_CACHE_SECONDS = 1;

// Status lists (contract section 14)
/** Badges of one list. */
export const STATUS_LIST_ENTRIES = 2 ** 17;
export const STATUS_BITS = 2;
/** How long a door may use a list before it requests a newer one (`ttl`), and how long caches may keep it. */
export const STATUS_LIST_TTL_SECONDS = 60;
export const DEFAULT_STATUS_LIFETIME_SECONDS = 24 * 3600;
/** A shorter lifetime would end a list before doors request the next one. */
export const MIN_STATUS_LIFETIME_SECONDS = STATUS_LIST_TTL_SECONDS;
/** Maximum age of a cached list. The contract allows 30 s; the difference is for slow clocks and slow reads. */
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
/** Changed badges that one statement reads for a list. */
export const STATUS_LIST_CHUNK_ROWS = 10_000;
/** After this many changes a list is saved in D1, so that they are not read again. */
export const STATUS_LIST_SAVED_CHANGES = 100;

// Connected doors (contract section 26)
/** How long a call is held while nothing changes. */
export const LIVE_HOLD_MILLISECONDS = 50_000;
/** Calls that are held for one application. */
export const MAX_LIVE_CALLS = 5000;
/** Changes of one delta. */
export const MAX_DELTA_CHANGES = 2000;
/** Changes within this time after a wake-up are sent together. */
export const LIVE_COALESCE_MILLISECONDS = 250;
/** Interval of D1 reads while a door listens, which find unreported changes. */
export const LIVE_COMPARE_MILLISECONDS = 30_000;
/** Pause before a retry after D1 did not respond. */
export const LIVE_RETRY_MILLISECONDS = 2000;
/** Shortest time between two writes of a door's last call. */
export const DOOR_SEEN_WRITE_MILLISECONDS = 10 * 60_000;
/** A door that has called within this time counts as connected. */
export const DOOR_CONNECTED_MILLISECONDS = 60_000;
/** Secrets of doors that an isolate caches. */
export const MAX_CACHED_DOORS = 10_000;

// The order of changes (contract section 21)
/** Deadline of a call of an object, retries included. It is shorter than that of other dependencies. */
export const CALL_DEADLINE_MILLISECONDS = 9000;
/** Pauses between tries of a call that was lost on the way: full jitter below these, each twice the one before. */
export const CALL_RETRY_BASE_MILLISECONDS = 100;
export const CALL_RETRY_MAX_MILLISECONDS = 2000;
/** Calls of one group. */
export const MAX_GROUP_CALLS = 100;
/** Characters of what an entry stores, after which a group takes no further call. */
export const MAX_ENTRY_CHARACTERS = 128 * 1024;
/**
 * Characters after which a large command continues in another entry, and the pause after each of its batches, as a
 * multiple of the batch's time. Chosen by `npm run simulate -- --isolation`, because other applications wait for such a
 * batch.
 */
export const MAX_PIECE_CHARACTERS = 24 * 1024;
export const SEND_PAUSES = 3;
/** Sum of the pauses of one command while its caller waits; the rest then goes in batches of this size. */
export const MAX_COMMAND_PAUSES_MILLISECONDS = 2000;
export const MAX_BATCH_CHARACTERS = 256 * 1024;
/** Calls of an application that may wait at once; more get 503. */
export const MAX_WAITING_CALLS = 1000;
/** Newest entries in which a new instance finds results of calls that may be repeated. */
export const MAX_RECENT_ENTRIES = 500;
/** Pauses between tries while D1 does not respond and a caller waits; each is twice the previous one. */
export const MIN_TRY_PAUSE_MILLISECONDS = 50;
export const MAX_TRY_PAUSE_MILLISECONDS = 1000;
/** Pause before the alarm continues unfinished work. */
export const RETRY_ALARM_MILLISECONDS = 10_000;
/** Entries, and characters of them, that one batch sends: D1 takes 1,000 queries an invocation, and an entry takes up to 15. */
export const SEND_ENTRIES = 50;
export const SEND_CHARACTERS = 32 * 1024;
/** Longest pause before a waiting batch, so that D1 has time for other applications. */
export const MAX_SEND_PAUSE_MILLISECONDS = 500;
/** Time from the first change after a comparison to the next comparison. */
export const COMPARE_AFTER_MILLISECONDS = 60_000;
/** How long entries are kept: one day longer than D1's Time Travel goes back. */
export const LOG_DAYS = 31;
/**
 * Above either size an allocator deletes its oldest entries early: that of its log, and that of its storage, which has room
 * for 10 GB (Durable Objects: Limits).
 */
export const MAX_LOG_BYTES = 4_000_000_000;
export const MAX_STORED_BYTES = 8_000_000_000;
/** Entries that one alarm deletes. */
export const PRUNE_ENTRIES = 1000;
/** Rows of one page of the copy from D1, of a republication and of a verification. */
export const COPY_PAGE_ROWS = 2000;
export const REPUBLISH_PAGE_ROWS = 200;
export const VERIFY_PAGE_ROWS = 1000;
/** Rows that one local statement inserts: bound as JSON each has up to 6 KB, and a value at most 2 MB (Durable Objects: Limits). */
export const INSERTED_ROWS = 200;
/** Differences that `reconcile --verify` lists; it counts all. */
export const MAX_LISTED_DIFFERENCES = 100;
/** Ends of each kind that one transaction records, and invitations that it scans for old ones. */
export const DUE_CHUNK_ROWS = 200;
export const PURGE_INVITATIONS = 500;
/** Maximum of a user's badges that have not been revoked or replaced (contract section 7). */
export const MAX_USER_BADGES = 10_000;
/** Badges and invitations of a user that one transaction erases. */
export const ERASE_BADGES = 10_000;
export const ERASE_INVITATIONS = 10_000;
/** Events, or rows of the history, that are looked through at once for an erased user. */
export const ERASE_CHUNK_ROWS = 5000;
/** Prefix of visitors' user IDs; reception's invitations vouch only for these (contract section 22). */
export const VISITOR_PREFIX = "visitor-";
/** The freed numbers that have been free for longest, of which one is drawn. */
export const FREED_CHUNK_NUMBERS = 500;
/** Used shares of a range, in percent, at which a warning is logged. */
export const RANGE_WARNING_PERCENTS = [99, 90] as const;
/** Commands of the script that are carried out at once. */
export const SCRIPT_COMMANDS_AT_ONCE = 20;
/** How long commands are kept. */
export const SCRIPT_COMMAND_RETENTION_DAYS = 7;

// Signing keys (contract section 10)
/**
 * How long a new signing key is published before new badges get it. A key set may be cached for `PUBLIC_CACHE_SECONDS`, and
 * an isolate or a data centre may serve one that is `APPLICATION_CACHE_SECONDS` old.
 */
export const NEW_KEY_DELAY_SECONDS = 10 * 60;
/** The same for `key rotate --now`, which allows 30 s. Earlier, an isolate may not have the key. */
export const URGENT_KEY_DELAY_SECONDS = 25;

// Proofs of bound badges (contract section 15)
/** Longest `DPoP` header that is read. A proof has some 700 characters; Workers takes headers of 128 KB in all. */
export const MAX_PROOF_CHARACTERS = 4096;
/** A `jti` is required but not stored, so it needs no least length. */
export const MAX_JTI_CHARACTERS = 256;
/** Allowed difference of `iat` from the service's clock, in both directions, in a proof without a nonce. */
export const PROOF_WINDOW_SECONDS = 60;
/** How long a nonce may be used. */
export const NONCE_LIFETIME_SECONDS = 300;
/** How long another key may replace a badge's key after `rebind`. */
export const REBIND_WINDOW_HOURS = 24;
/** Allowed lead of the clock that issued a nonce over the clock that checks it. */
export const NONCE_CLOCK_SKEW_SECONDS = 10;

// Verified users (contract section 22)
/** Default claim of a user token that contains the user ID. */
export const DEFAULT_USER_CLAIM = "sub";
/** Longest `Authorization` header that is read: access tokens of some providers list all groups of a user. */
export const MAX_USER_TOKEN_CHARACTERS = 16 * 1024;
/** Allowed difference of the issuer's clock from the service's, in both directions. */
export const USER_TOKEN_LEEWAY_SECONDS = 60;
/** Age at which an issuer's keys are fetched again. */
export const ISSUER_KEYS_REFRESH_SECONDS = 10 * 60;
/** How long known keys are used while the issuer cannot be reached. */
export const ISSUER_KEYS_LIFETIME_SECONDS = 24 * 3600;
/** Shortest time between two fetches for unknown key IDs, and from a failed fetch to the next while keys are known. */
export const ISSUER_PATIENCE_SECONDS = 60;
/** Deadline of a fetch: the discovery document and the key set together. */
export const ISSUER_DEADLINE_MILLISECONDS = 5000;
/** Interval in which a call polls whether another call has fetched the keys. */
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
/** Deadline of a replica read; then the primary is read. A forged bookmark costs its sender no more than that. */
export const NEAR_DEADLINE_MILLISECONDS = 1000;
/** Maximum age of a replica that may accept a badge. The contract allows 90 s; the difference is for clocks that differ. */
export const MAX_REPLICA_AGE_SECONDS = 85;
/** Allowed lead of the clock that ticked over the clock that reads. */
export const REPLICA_CLOCK_SKEW_SECONDS = 5;

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
/** How long an event is leased to its sender: an attempt and its recording, with a margin. */
export const DELIVERY_LEASE_SECONDS = 60;
/** A random part of this is added to each lease, by which a repeated lease recognizes its own events. */
export const DELIVERY_LEASE_SPREAD_MILLISECONDS = 10_000;
export const MAX_RESPONSE_READ_BYTES = 16 * 1024;
export const MAX_STORED_RESPONSE_BYTES = 1024;
/** An endpoint is held after this time without a success, and at least this many failures. */
export const HOLD_AFTER_SECONDS = 120 * 3600;
export const HOLD_AFTER_ATTEMPTS = 10;

// The sweep
/** Rows that one statement of the sweep takes, per application where the statement is per application. */
export const SWEEP_CHUNK_ROWS = 500;
/** Allocators per chunk of a tick, and the number of concurrent calls. */
export const TICK_CHUNK_APPLICATIONS = 400;
export const ALLOCATORS_CALLED_AT_ONCE = 100;
/** Time between two ticks after which every allocator of the home compares itself with D1. */
export const TICK_GAP_MILLISECONDS = 90_000;
/** Time limit of each kind of work in a sweep. */
export const SWEEP_SHARE_MILLISECONDS = 20_000;
/** Chunks of each kind of work in one sweep: an invocation may make 1,000 D1 queries (D1: Limits). */
export const MAX_SWEEP_CHUNKS = 50;
/** Sealed values of each table that one chunk re-seals: each costs some milliseconds of RSA. */
export const RESEAL_CHUNK_ROWS = 50;
/** Number of unopenable values that a sweep logs one by one; it counts the rest. */
export const MAX_LOGGED_UNREADABLE = 20;
/**
 * Maximum of events that one sweep enqueues, per application and in all. The local queue takes 10,000 messages at once.
 */
export const MAX_APPLICATION_ENQUEUED = 2000;
export const MAX_SWEEP_ENQUEUED = 5000;
/** Age at which an untried event gets a due time. A first attempt takes no lease, and most have ended by then. */
export const UNTRIED_MILLISECONDS = 20_000;
/** How late an event may reach D1. An entry that the allocator sends again has events with due times. */
export const LATE_EVENT_MILLISECONDS = 10 * 60_000;
/** Period whose events one chunk of a sweep reads. */
export const UNTRIED_CHUNK_MILLISECONDS = 3_600_000;
/** Maximum delay of a queue message; the sweep enqueues later retries. */
export const MAX_QUEUE_DELAY_SECONDS = 120;
/** Maximum messages of one `sendBatch` (Queues: Limits). */
export const MAX_QUEUE_BATCH_MESSAGES = 100;

// Statistics (contract section 19)
/** Number of newest badges whose metadata is counted. */
export const STATISTICS_SAMPLED_BADGES = 20_000;
/**
 * Maximum of counted events per state. It is a little below 10,000, so that all counts together read at most 60,000
 * rows (contract section 19).
 */
export const STATISTICS_EVENTS_COUNTED = 9_975;
/** Maximum of counted freed numbers within the reuse delay. */
export const STATISTICS_COOLING_DOWN_COUNTED = 10_000;
export const STATISTICS_DAYS = 90;
/** Number of values of a metadata field that are listed, most frequent first. */
export const STATISTICS_VALUES_SHOWN = 15;

// Retention (contract section 18)
/** Defaults of the variables EVENT_RETENTION_DAYS and INVITATION_RETENTION_DAYS in wrangler.toml. */
export const EVENT_RETENTION_DAYS = 30;
export const INVITATION_RETENTION_DAYS = 365;
/** Exhausted and held events are kept this many times as long as delivered ones. */
export const UNDELIVERED_RETENTION_FACTOR = 3;
export const HISTORY_RETENTION_DAYS = 400;
/** Rows of each table that one chunk scans. */
export const PURGE_CHUNK_ROWS = 1000;
/** Chunks of each table that one sweep scans. */
export const MAX_PURGE_CHUNKS = 5;
