/** Sizes and ages of caches, and of the replicas that may serve a read. */

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

// Reads near the caller (contract section 16)
/** Deadline of a replica read; then the primary is read. A forged bookmark costs its sender no more than that. */
export const NEAR_DEADLINE_MILLISECONDS = 1000;
/** Maximum age of a replica that may accept a badge. The contract allows 90 s; the difference is for clocks that differ. */
export const MAX_REPLICA_AGE_SECONDS = 85;
/** Allowed lead of the clock that ticked over the clock that reads. */
export const REPLICA_CLOCK_SKEW_SECONDS = 5;
