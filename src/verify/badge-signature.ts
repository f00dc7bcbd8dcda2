import { type BadgeClaims, parseClaims } from "./claims.ts";
import { splitCompactJws } from "./compact-jws.ts";
import { isEs256Signature, trustedKey } from "./public-keys.ts";
import type { Expectations, RefusedBadgeSignature, VerificationFailure, VerifiedBadgeSignature } from "./types.ts";

export type {
  Expectations,
  JwkSet,
  RefusedBadgeSignature,
  SinglePublicKey,
  VerificationFailure,
  VerifiedBadgeSignature,
} from "./types.ts";

/** The media type that tells a badge signature from any other JWT of the same key (RFC 8725 section 3.11). */
const BADGE_SIGNATURE_TYPE = "badge-signature+jwt";
const DEFAULT_CLOCK_TOLERANCE_SECONDS = 60;

/**
 * Verifies the `signature` that `POST /v1/badge/sign` answers (contract section 3), without asking the service.
 *
 * @throws RangeError when `now` or a number of seconds is not a finite number of at least 0, which is the caller's
 *   mistake and would turn a comparison off; never because of the JWT
 */
export async function verifyBadgeSignature(
  jwt: string,
  expected: Expectations,
): Promise<VerifiedBadgeSignature | RefusedBadgeSignature> {
  const clock = readClock(expected);
  const jws = splitCompactJws(jwt);
  if (jws === null) return refused("malformed");
  const header = checkHeader(jws.header);
  if (typeof header === "string") return refused(header);
  const key = await trustedKey(expected.keys, header.keyId);
  if (key === null) return refused("unknown-key");
  if (!(await isEs256Signature(key, jws.signature, jws.signingInput))) return refused("bad-signature");

  // From here on the payload is the service's word; before, it was anyone's.
  const claims = parseClaims(jws.payload);
  if (claims === null) return refused("malformed");
  const failure = checkClaims(claims, expected, clock);
  return failure === null ? verified(claims, header.keyId) : refused(failure);
}

/** All that is decided by the header, before any key is chosen: a JWT must not choose how it is verified. */
function checkHeader(header: Record<string, unknown>): { keyId: string } | VerificationFailure {
  // Extensions named here must be understood or the JWS refused; this profile has none (RFC 7515 section 4.1.11).
  if (Object.hasOwn(header, "crit")) return "malformed";
  // Not `none`, not an HMAC keyed with the public key, not another curve (RFC 8725 sections 2.1 and 3.1).
  if (header.alg !== "ES256") return "wrong-algorithm";
  if (header.typ !== BADGE_SIGNATURE_TYPE) return "wrong-type";
  return typeof header.kid === "string" ? { keyId: header.kid } : "malformed";
}

function checkClaims(claims: BadgeClaims, expected: Expectations, clock: Clock): VerificationFailure | null {
  if (claims.audience !== expected.applicationId) return "wrong-audience";
  const untimely = checkTimes(claims, clock);
  if (untimely !== null) return untimely;
  if ("badgeNumber" in expected && claims.badgeNumber !== expected.badgeNumber) return "wrong-badge-number";
  const otherClientSignature = "clientSignature" in expected && claims.clientSignature !== expected.clientSignature;
  return otherClientSignature ? "wrong-client-signature" : null;
}

function checkTimes(
  claims: BadgeClaims,
  { nowSeconds, toleranceSeconds, maxAgeSeconds }: Clock,
): VerificationFailure | null {
  const { issuedAtSeconds, notBeforeSeconds, expiresAtSeconds } = claims;
  const validFromSeconds = Math.max(issuedAtSeconds, notBeforeSeconds ?? 0);
  if (validFromSeconds > nowSeconds + toleranceSeconds) return "not-yet-valid";
  // "On or after" the expiry it must not be accepted (RFC 7519 section 4.1.4).
  if (expiresAtSeconds !== null && nowSeconds >= expiresAtSeconds + toleranceSeconds) return "expired";
  return nowSeconds - issuedAtSeconds > maxAgeSeconds + toleranceSeconds ? "too-old" : null;
}

interface Clock {
  nowSeconds: number;
  toleranceSeconds: number;
  /** Infinity when age does not matter. */
  maxAgeSeconds: number;
}

function readClock(expected: Expectations): Clock {
  const { now, clockToleranceSeconds = DEFAULT_CLOCK_TOLERANCE_SECONDS, maxAgeSeconds } = expected;
  for (const value of [now, clockToleranceSeconds, "maxAgeSeconds" in expected ? maxAgeSeconds : 0]) {
    // Every comparison with NaN is false, so none of the checks of time would refuse anything.
    if (!(Number.isFinite(value) && Number(value) >= 0)) throw new RangeError("not a time or a number of seconds");
  }
  return {
    nowSeconds: Math.floor(now / 1000),
    toleranceSeconds: clockToleranceSeconds,
    maxAgeSeconds: maxAgeSeconds ?? Number.POSITIVE_INFINITY,
  };
}

function verified(claims: BadgeClaims, keyId: string): VerifiedBadgeSignature {
  const { badgeNumber, issuedAtSeconds, expiresAtSeconds, clientSignature } = claims;
  const expiresAt = expiresAtSeconds === null ? null : expiresAtSeconds * 1000;
  return { ok: true, badgeNumber, issuedAt: issuedAtSeconds * 1000, expiresAt, clientSignature, keyId };
}

function refused(reason: VerificationFailure): RefusedBadgeSignature {
  return { ok: false, reason };
}
