/** Calls of an allocator, its log and its batches to D1 (contract section 21). */

/** Deadline of a call of an object, retries included. It is shorter than that of other dependencies. */
export const CALL_DEADLINE_MILLISECONDS = 9000;
/** Pauses between tries of a call that was lost on the way: full jitter below these, each twice the one before. */
export const CALL_RETRY_BASE_MILLISECONDS = 100;
export const CALL_RETRY_MAX_MILLISECONDS = 2000;
/** Maximum of calls that are decided together, as one group. */
export const MAX_GROUP_CALLS = 100;
/** Characters of what an entry stores, after which a group takes no further call. */
export const MAX_ENTRY_CHARACTERS = 128 * 1024;
/**
 * Characters after which a large command continues in another entry. Chosen by `npm run simulate -- --isolation`, like
 * the next value, because other applications wait for each of its batches.
 */
export const MAX_PIECE_CHARACTERS = 24 * 1024;
/** The pause after each batch, as a multiple of the batch's time. */
export const SEND_PAUSE_FACTOR = 3;
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
/** The same pause after callers got 503. Their calls are settled within ten seconds (contract section 21). */
export const GIVEN_UP_ALARM_MILLISECONDS = 1000;
/** Pause between comparisons while D1's head is unknown to the log and an administrator has to decide. */
export const NOT_IN_LOG_ALARM_MILLISECONDS = 600_000;
/** Entries, and characters of them, that one batch sends: D1 takes 1,000 queries an invocation, and an entry takes up to 15. */
export const SEND_ENTRIES = 50;
export const SEND_CHARACTERS = 32 * 1024;
/** Longest pause before a waiting batch, so that D1 has time for other applications. */
export const MAX_SEND_PAUSE_MILLISECONDS = 500;
/** Time from the first change after a comparison to the next comparison. */
export const COMPARE_AFTER_MILLISECONDS = 60_000;
/**
 * Time from the last change to the last comparison. A later restore is noticed by a tick: two beats are at most
 * `TICK_GAP_MILLISECONDS` and a trip to D1 apart, or the second one doubts D1.
 */
export const LAST_COMPARISON_MILLISECONDS = 110_000;
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
/** Maximum of fresh numbers that one command skips. */
export const MAX_SKIPPED_NUMBERS = 1_000_000_000;
/** Rows that one local statement inserts: bound as JSON each has up to 6 KB, and a value at most 2 MB (Durable Objects: Limits). */
export const INSERTED_ROWS = 200;
/** Differences that `reconcile --verify` lists; it counts all. */
export const MAX_LISTED_DIFFERENCES = 100;
/** Ends of each kind that one transaction records, and invitations that it scans for old ones. */
export const ENDS_CHUNK_ROWS = 200;
export const PURGE_INVITATIONS = 500;
/** Maximum of a user's badges that have not been revoked or replaced (contract section 7). */
export const MAX_USER_BADGES = 10_000;
/** Badges and invitations of a user that one transaction erases. */
export const ERASE_BADGES = 10_000;
export const ERASE_INVITATIONS = 10_000;
/** Events, or rows of the history, that are looked through at once for an erased user. */
export const ERASE_CHUNK_ROWS = 5000;
/** Rows of the history from which one entry takes an erased user: each has up to 8 KB, and an entry at most 2 MB (Durable Objects: Limits). */
export const ERASE_MENTIONS = 200;
/** The freed numbers that have been free for longest, of which one is drawn. */
export const FREED_CHUNK_NUMBERS = 500;
/** Used shares of a range, in percent, at which a warning is logged. */
export const RANGE_WARNING_PERCENTS = [99, 90] as const;
/** Commands of the script that one query reads; they are carried out one after the other. */
export const SCRIPT_COMMANDS_PER_READ = 20;
/** How long commands of the script are kept. */
export const SCRIPT_COMMAND_RETENTION_DAYS = 7;
