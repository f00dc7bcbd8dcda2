/** Calls of connected doors (contract section 26). */

/** How long a call is held while nothing changes. */
export const LIVE_HOLD_MILLISECONDS = 50_000;
/** Maximum of calls held for one application; more get 503. */
export const MAX_LIVE_CALLS = 5000;
/** Maximum of changes in one delta; a door that lacks more fetches the lists. */
export const MAX_DELTA_CHANGES = 2000;
/** Maximum of signed deltas that an application's object keeps. A delta may have 32 KB, and each caller chooses where its own begins. */
export const MAX_SIGNED_DELTAS = 100;
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
