/** How much work one tick of a home does, and how long rows are kept. */

// The sweep
/** Rows that one statement of the sweep takes, per application where the statement is per application. */
export const SWEEP_CHUNK_ROWS = 500;
/** Concurrent calls of a tick to allocators. */
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
 * A sweep first takes this many events of each application; it takes up to the maximum only if those do not fill
 * `MAX_SWEEP_ENQUEUED`.
 */
export const FIRST_ENQUEUED_PER_APPLICATION = 25;
/** Maximum of events that one sweep enqueues, per application and in all. The local queue takes 10,000 messages at once. */
export const MAX_ENQUEUED_PER_APPLICATION = 2000;
export const MAX_SWEEP_ENQUEUED = 5000;
/** Age at which an untried event gets a due time. */
export const UNTRIED_MILLISECONDS = 20_000;
/** Age from which a first attempt takes a lease. One that begins earlier has ended before its event gets a due time. */
export const LEASE_AGE_MILLISECONDS = 3000;
/**
 * How late an event without a due time may reach D1. The allocator gives due times to events that are half as old, and to those of
 * entries that it sends again.
 */
export const LATE_EVENT_MILLISECONDS = 10 * 60_000;
/** Period whose events one chunk of a sweep reads. */
export const UNTRIED_CHUNK_MILLISECONDS = 3_600_000;
/** Maximum delay of a queue message; the sweep enqueues later retries. */
export const MAX_QUEUE_DELAY_SECONDS = 120;
/** Maximum messages of one `sendBatch` (Queues: Limits). */
export const MAX_QUEUE_BATCH_MESSAGES = 100;

// Retention (contract section 18)
/** Defaults of the variables of the same names in wrangler.toml. */
export const EVENT_RETENTION_DAYS = 30;
export const INVITATION_RETENTION_DAYS = 365;
export const HISTORY_RETENTION_DAYS = 400;
/** Exhausted and held events are kept this many times as long as delivered ones. */
export const UNDELIVERED_RETENTION_FACTOR = 3;
/** Rows of each table that one chunk scans. */
export const PURGE_CHUNK_ROWS = 1000;
/** Chunks of each table that one sweep scans. */
export const MAX_PURGE_CHUNKS = 5;
