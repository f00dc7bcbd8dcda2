import { checkStatus } from "./badge-status.ts";
import { type BadgeClaims, parseClaims } from "./claims.ts";
import { verifySignedJwt } from "./signed-jwt.ts";
import type { Expectations, RefusedBadgeSignature, VerificationFailure, VerifiedBadgeSignature } from "./types.ts";

export type {
  BoundKey,
  Expectations,
  JwkSet,
  RefusedBadgeSignature,
  SinglePublicKey,
  StatusDelta,
  StatusList,
  StatusListFailure,
  VerificationFailure,
  VerifiedBadgeSignature,
} from "./types.ts";

const BADGE_SIGNATURE_JWT = {
  type: "badge-signature+jwt",
  /** Twice the longest of the service: the client signature has at most 4,096 bytes, and base64 is applied twice. */
  maxCharacters: 16_384,
};
const DEFAULT_CLOCK_TOLERANCE_SECONDS = 60;

/**
 * Verifies the `signature` in the response of `POST /v1/badge/sign` (contract section 3) without asking the service.
 *
 * @throws RangeError if `now` or a number of seconds is not finite and at least 0: such a mistake of the caller would turn a
 *   check off. A JWT never causes an error.
 */
export async function verifyBadgeSignature(
  jwt: string,
  expected: Expectations,
): Promise<VerifiedBadgeSignature | RefusedBadgeSignature> {
  const clock = readClock(expected);
  const signed = await verifySignedJwt(jwt, BADGE_SIGNATURE_JWT, expected.keys);
  if (typeof signed === "string") return refused(signed);

  // Only now is the payload known to come from the service.
  const claims = parseClaims(signed.payload);
  if (claims === null) return refused("malformed");
  const failure = checkClaims(claims, expected, clock);
  if (failure !== null) return refused(failure);
  const result = verified(claims, signed.keyId);
  if (claims.status === null) return result;
  const status = await checkStatus(claims.status, expected, clock);
  if (status.failure !== null) return refused(status.failure);
  return status.acceptedDespite === null ? result : { ...result, acceptedDespite: status.acceptedDespite };
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
  const { badgeNumber, issuedAtSeconds, expiresAtSeconds, clientSignature, boundKey } = claims;
  const expiresAt = expiresAtSeconds === null ? null : expiresAtSeconds * 1000;
  return { ok: true, badgeNumber, issuedAt: issuedAtSeconds * 1000, expiresAt, clientSignature, keyId, boundKey };
}

function refused(reason: VerificationFailure): RefusedBadgeSignature {
  return { ok: false, reason };
}
