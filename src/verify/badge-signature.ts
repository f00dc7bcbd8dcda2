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

/** Distinguishes a badge signature from any other JWT signed with the same key (RFC 8725 section 3.11). */
const BADGE_SIGNATURE_TYPE = "badge-signature+jwt";
const DEFAULT_CLOCK_TOLERANCE_SECONDS = 60;

/**
 * Verifies the `signature` in the response of `POST /v1/badge/sign` (contract section 3) without asking the service.
 *
 * @throws RangeError if `now` or a number of seconds is not a finite number of at least 0, a mistake of the caller that
 *   would turn a comparison off. A JWT never causes an error.
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

  // Only now is the payload known to come from the service.
  const claims = parseClaims(jws.payload);
  if (claims === null) return refused("malformed");
  const failure = checkClaims(claims, expected, clock);
  return failure === null ? verified(claims, header.keyId) : refused(failure);
}

/** Checks the header before a key is chosen, so that a JWT cannot choose how it is verified. */
function checkHeader(header: Record<string, unknown>): { keyId: string } | VerificationFailure {
  // A JWS with an extension that is not understood must be refused; this profile has no extensions (RFC 7515 section 4.1.11).
  if (Object.hasOwn(header, "crit")) return "malformed";
  // Refuses `none`, an HMAC keyed with the public key, and other curves (RFC 8725 sections 2.1 and 3.1).
  if (header.alg !== "ES256") return "wrong-algorithm";
  if (header.typ !== BADGE_SIGNATURE_TYPE) return "wrong-type";
  return typeof header.kid === "string" ? { keyId: header.kid } : "malformed";
}

function checkClaims(claims: BadgeClaims, expected: Expectations, clock: Clock): VerificationFailure | null {
  if (claims.audience !== expected.applicationId) return "wrong-audience";
  const timeFailure = checkTimes(claims, clock);
  if (timeFailure !== null) return timeFailure;
  if ("badgeNumber" in expected && claims.badgeNumber !== expected.badgeNumber) return "wrong-badge-number";
  const isWrongSignature = "clientSignature" in expected && claims.clientSignature !== expected.clientSignature;
  return isWrongSignature ? "wrong-client-signature" : null;
}

function checkTimes(
  claims: BadgeClaims,
  { nowSeconds, toleranceSeconds, maxAgeSeconds }: Clock,
): VerificationFailure | null {
  const { issuedAtSeconds, notBeforeSeconds, expiresAtSeconds } = claims;
  const validFromSeconds = Math.max(issuedAtSeconds, notBeforeSeconds ?? 0);
  if (validFromSeconds > nowSeconds + toleranceSeconds) return "not-yet-valid";
  // It must not be accepted "on or after" the expiry (RFC 7519 section 4.1.4).
  if (expiresAtSeconds !== null && nowSeconds >= expiresAtSeconds + toleranceSeconds) return "expired";
  return nowSeconds - issuedAtSeconds > maxAgeSeconds + toleranceSeconds ? "too-old" : null;
}

interface Clock {
  nowSeconds: number;
  toleranceSeconds: number;
  /** Infinity if any age is accepted. */
  maxAgeSeconds: number;
}

function readClock(expected: Expectations): Clock {
  const { now, clockToleranceSeconds = DEFAULT_CLOCK_TOLERANCE_SECONDS, maxAgeSeconds } = expected;
  for (const value of [now, clockToleranceSeconds, "maxAgeSeconds" in expected ? maxAgeSeconds : 0]) {
    // Every comparison with NaN is false: the time checks would refuse nothing.
    if (!(Number.isFinite(value) && Number(value) >= 0))
      throw new RangeError("now or a number of seconds is not a finite number of at least 0");
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
