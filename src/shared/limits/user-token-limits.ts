/** User tokens and the keys of their issuers (contract section 22). */

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
export const ISSUER_REFETCH_SECONDS = 60;
/** Deadline of a fetch: the discovery document and the key set together. */
export const ISSUER_DEADLINE_MILLISECONDS = 5000;
/** Interval in which a call polls whether another call has fetched the keys. */
export const ISSUER_POLL_MILLISECONDS = 20;
/** Longest discovery document or key set. Those of large providers have some 20 KB. */
export const MAX_ISSUER_DOCUMENT_BYTES = 512 * 1024;
/** Maximum of one issuer's keys; later ones are left out. */
export const MAX_ISSUER_KEYS = 100;
export const MAX_CACHED_ISSUERS = 500;
/** Hours of logins that `stats` counts with `--observe`. */
export const OBSERVED_HOURS = 24;
/** Shortest time between two writes of an isolate's counts of one application. */
export const OBSERVED_WRITE_MILLISECONDS = 5000;
