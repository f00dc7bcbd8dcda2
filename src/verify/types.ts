/**
 * A JWK Set (RFC 7517 section 5): the response of `GET /v1/applications/{applicationId}/jwks.json`. The verifier checks the
 * entries, so parsed JSON can be passed as it is.
 */
export interface JwkSet {
  readonly keys: readonly unknown[];
}

/** One key: the `publicKey` in the 201 response of `POST /v1/badge`, base64 of the SPKI DER. */
export interface SinglePublicKey {
  readonly publicKey: string;
}

/**
 * Why a badge signature was refused, in the order of the checks:
 *
 * - `malformed`: not a compact JWS in strict base64url with a JSON header (RFC 7515 section 7.1), or a header with `crit`
 *   or without `kid`; after the signature is verified: claims that are not JSON, or a missing or invalid claim
 * - `wrong-algorithm`: `alg` is not exactly ES256 (RFC 8725 section 3.1)
 * - `wrong-type`: `typ` is not exactly badge-signature+jwt (RFC 8725 section 3.11)
 * - `unknown-key`: no usable key with the JWT's `kid`; download the key set again
 * - `bad-signature`: not made with that key (RFC 7518 section 3.4)
 * - `wrong-audience`: for another application (RFC 7519 section 4.1.3)
 * - `not-yet-valid`: `iat` or `nbf` is in the future by more than the clock tolerance (RFC 7519 sections 4.1.5 and 4.1.6)
 * - `expired`: `exp` has passed, by the clock tolerance or more (RFC 7519 section 4.1.4)
 * - `too-old`: issued longer ago than `maxAgeSeconds`, by more than the clock tolerance
 * - `wrong-badge-number`, `wrong-client-signature`: not what the caller expects
 */
export type VerificationFailure =
  | "malformed"
  | "wrong-algorithm"
  | "wrong-type"
  | "unknown-key"
  | "bad-signature"
  | "wrong-audience"
  | "not-yet-valid"
  | "expired"
  | "too-old"
  | "wrong-badge-number"
  | "wrong-client-signature";

/**
 * What a badge signature must match. A badge number or client signature that is present but undefined matches nothing, so
 * that a failed look-up of the expected value does not turn the check off.
 */
export interface Expectations {
  /** The application's public keys. */
  keys: JwkSet | SinglePublicKey;
  applicationId: string;
  /** Milliseconds since 1970-01-01 UTC: `Date.now()`. */
  now: number;
  badgeNumber?: string;
  /** The client signature as it was sent to the service: base64 text, compared as text. */
  clientSignature?: string;
  /** How far the clocks of service and verifier may differ, in seconds. Default 60. */
  clockToleranceSeconds?: number;
  /** Greatest accepted age in seconds, whether or not the signature has an expiry. */
  maxAgeSeconds?: number;
}

/** What the service attests. Times are milliseconds since 1970-01-01 UTC. */
export interface VerifiedBadgeSignature {
  ok: true;
  badgeNumber: string;
  issuedAt: number;
  /** Null when the application has no signature lifetime. */
  expiresAt: number | null;
  clientSignature: string;
  keyId: string;
}

/** A refusal; `reason` is for logs, not for the person at the door. */
export interface RefusedBadgeSignature {
  ok: false;
  reason: VerificationFailure;
}
