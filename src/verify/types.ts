/**
 * A JWK Set (RFC 7517 section 5), as `GET /v1/applications/{applicationId}/jwks.json` answers it. The entries are
 * checked here, so that parsed JSON can be passed as it came.
 */
export interface JwkSet {
  readonly keys: readonly unknown[];
}

/** One key: the `publicKey` of the 201 answer of `POST /v1/badge`, base64 of the SPKI DER. */
export interface SinglePublicKey {
  readonly publicKey: string;
}

/**
 * Why a badge signature was refused, in the order of the checks:
 *
 * - `malformed`: not a compact JWS of strict base64url with a JSON header (RFC 7515 section 7.1), or a header with
 *   `crit` or without `kid`; once the signature is verified: not JSON, or a claim missing or of another form
 * - `wrong-algorithm`: `alg` is not exactly ES256 (RFC 8725 section 3.1)
 * - `wrong-type`: `typ` is not exactly badge-signature+jwt (RFC 8725 section 3.11)
 * - `unknown-key`: no usable key with the JWT's `kid`; fetch the key set again
 * - `bad-signature`: not the signature of that key (RFC 7518 section 3.4)
 * - `wrong-audience`: for another application (RFC 7519 section 4.1.3)
 * - `not-yet-valid`: issued in the future or before `nbf`, past the clock tolerance (RFC 7519 sections 4.1.5 and 4.1.6)
 * - `expired`: at or after `exp`, with the clock tolerance (RFC 7519 section 4.1.4)
 * - `too-old`: issued longer ago than the caller accepts
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
 * What a badge signature must agree with. A badge number or client signature that is present but undefined agrees with
 * nothing, so that a failed look-up of what a door expects does not turn the check off.
 */
export interface Expectations {
  /** The application's public keys, from its key set or from the 201 answer. */
  keys: JwkSet | SinglePublicKey;
  applicationId: string;
  /** Milliseconds since 1970-01-01 UTC: `Date.now()`. */
  now: number;
  badgeNumber?: string;
  /** The client signature as it was sent to the service: base64 text, compared as text. */
  clientSignature?: string;
  /** How far the two clocks may be apart, in seconds. Default 60. */
  clockToleranceSeconds?: number;
  /** Refuse what was issued longer ago than this many seconds, whether or not it has an expiry. */
  maxAgeSeconds?: number;
}

/** What the service attests. Times are milliseconds since 1970-01-01 UTC, like `now`. */
export interface VerifiedBadgeSignature {
  ok: true;
  badgeNumber: string;
  issuedAt: number;
  /** Null when the application has no signature lifetime. */
  expiresAt: number | null;
  clientSignature: string;
  keyId: string;
}

/** A refusal; `reason` is for logs, not for whoever stands at the door. */
export interface RefusedBadgeSignature {
  ok: false;
  reason: VerificationFailure;
}
