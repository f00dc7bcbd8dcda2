/** Signing keys, and proofs that a phone has its key. */

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
