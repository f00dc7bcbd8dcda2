/** Sizes of requests and responses, rates of calls, and the values that the contract bounds. */

// Badge numbers (contract section 1)
/** Largest badge number: 2^53 - 1, the largest integer that every JSON parser reads exactly. */
export const MAX_BADGE_NUMBER = Number.MAX_SAFE_INTEGER;
/** First number of the first default range. */
export const FIRST_DEFAULT_NUMBER = 1_000_000_000;
/** Numbers in a default range. */
export const DEFAULT_RANGE_SIZE = 10_000_000;
/** Largest number of a default range: 2^35 - 1, the largest of the 35-bit field of an H10302 card. */
export const MAX_DEFAULT_NUMBER = 34_359_738_367;

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
/**
 * As in `[[ratelimits]]` of wrangler.toml, which the platform enforces. The first two are only for the reference; the third is
 * also the limit of an isolate's own count (auth-failure-limiter.ts).
 */
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
