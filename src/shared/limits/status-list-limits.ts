/** Status lists (contract section 14). */

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
 * A list whose first ordinal is further ahead than this cannot begin within `STATUS_LIST_CACHE_SECONDS`, because an
 * object serves about 1,000 calls a second (Durable Objects: Limits).
 */
export const DISTANT_LIST_ORDINALS = 2 ** 15;
/** A list takes 60 KB at most. */
export const MAX_CACHED_STATUS_LISTS = 100;
/** Each takes 10 KB at most. */
export const MAX_CACHED_STATUS_INDEXES = 500;
/** Changed badges that one statement reads for a list. */
export const STATUS_LIST_CHUNK_ROWS = 10_000;
/** After this many changes a list is saved in D1, so that they are not read again. */
export const STATUS_LIST_SAVED_CHANGES = 100;
