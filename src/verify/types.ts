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
 * Why any JWT of the service was refused, in the order of the checks:
 *
 * - `malformed`: not a compact JWS in strict base64url with a JSON header (RFC 7515 section 7.1), or a header with `crit`
 *   or without `kid`; after the signature is verified: claims that are not JSON, or a missing or invalid claim
 * - `wrong-algorithm`: `alg` is not exactly ES256 (RFC 8725 section 3.1)
 * - `wrong-type`: `typ` is not exactly that of this kind of JWT (RFC 8725 sections 3.11 and 3.12)
 * - `unknown-key`: no usable key with the JWT's `kid`; download the key set again
 * - `bad-signature`: not made with that key (RFC 7518 section 3.4)
 */
export type JwtFailure = "malformed" | "wrong-algorithm" | "wrong-type" | "unknown-key" | "bad-signature";

/** Why a status list was refused; `wrong-uri`: its `sub` is not the URI. */
export type StatusListFailure = JwtFailure | "wrong-uri";

/**
 * Why a badge signature was refused, in the order of the checks, after those of `JwtFailure`:
 *
 * - `wrong-audience`: for another application (RFC 7519 section 4.1.3)
 * - `not-yet-valid`: `iat` or `nbf`, the badge's start, is in the future by more than the clock tolerance (RFC 7519 sections 4.1.5 and
 *   4.1.6)
 * - `expired`: `exp` has passed, by the clock tolerance or more (RFC 7519 section 4.1.4)
 * - `too-old`: issued longer ago than `maxAgeSeconds`, by more than the clock tolerance
 * - `wrong-badge-number`, `wrong-client-signature`: not what the caller expects
 * - `status-unknown`: `statusLists` has no list of the badge's `uri`, or one that is not a genuine list of that URI, is from
 *   the future, or has no valid entry for the badge
 * - `revoked`: by its status list the badge was revoked or replaced, which is final
 * - `suspended`: by its status list the badge is suspended or has expired; that may change
 * - `status-stale`: the list's `exp` has passed, by the clock tolerance or more; download it again
 */
export type VerificationFailure =
  | JwtFailure
  | "wrong-audience"
  | "not-yet-valid"
  | "expired"
  | "too-old"
  | "wrong-badge-number"
  | "wrong-client-signature"
  | "status-unknown"
  | "revoked"
  | "suspended"
  | "status-stale";

/**
 * A verified status list, as `readStatusList` returns it. Keep it, so that not every badge signature costs verifying and
 * decompressing its list. Times are milliseconds since 1970-01-01 UTC.
 */
export interface StatusList {
  readonly uri: string;
  readonly issuedAt: number;
  /** The time from which the list is stale. */
  readonly expiresAt: number;
  /** After how many seconds to download it again; null if the list does not say. */
  readonly ttlSeconds: number | null;
  /** The last change that it contains; null if the list does not say. */
  readonly change: number | null;
  /** Two bits for each badge. */
  readonly statuses: Uint8Array;
}

/** A verified response of `GET /v1/live`, as `readStatusDelta` returns it: the changes after `since` and up to `change`. */
export interface StatusDelta {
  /** The address of the application's status lists without the last slash and the number. */
  readonly uri: string;
  /** Milliseconds since 1970-01-01 UTC. */
  readonly issuedAt: number;
  readonly since: number;
  readonly change: number;
  /** The present status of each badge, as the lists have it: number of its list, and index there. */
  readonly entries: readonly { readonly list: number; readonly index: number; readonly status: number }[];
}

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
  /**
   * Status lists by the `uri` that badge signatures name: the JWT as downloaded, or what `readStatusList` made of it. They
   * matter only to applications with status lists (contract section 14).
   */
  statusLists?: Readonly<Record<string, string | StatusList>>;
  /** What to do with a badge whose status list is not in `statusLists`. Default `refuse`, as `status-unknown`. */
  missingStatusList?: "refuse" | "accept";
  /** What to do with a badge that is active by an expired list. Default `refuse`, as `status-stale`. */
  staleStatusList?: "refuse" | "accept";
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
  /** The key that the badge is bound to, from `cnf` (RFC 7800); null if it is not bound. See `verifyPossession`. */
  boundKey: BoundKey | null;
  /** Why the badge would have been refused; only if `missingStatusList` or `staleStatusList` is `accept`. */
  acceptedDespite?: "status-unknown" | "status-stale";
}

/** The public key of a phone: a JWK with only its required members (RFC 7518 section 6.2.1). */
export interface BoundKey {
  kty: "EC";
  crv: "P-256";
  x: string;
  y: string;
}

/** A refusal; `reason` is for logs, not for the person at the door. */
export interface RefusedBadgeSignature {
  ok: false;
  reason: VerificationFailure;
}
