import { verifyBadgeSignature } from "./badge-signature.ts";
import { type CompactJws, splitCompactJws } from "./compact-jws.ts";
import { encodeBase64Url, parseJsonObject } from "./encoding.ts";
import { isChallengeOver, readChallenge } from "./possession-challenge.ts";
import type {
  PossessionExpectations,
  PossessionFailure,
  PresentedBadge,
  RefusedPossession,
  VerifiedPossession,
} from "./possession-types.ts";
import { importPoint, isEs256Signature } from "./public-keys.ts";

/** A response has about 500. */
const MAX_RESPONSE_CHARACTERS = 16_384;

/** Distinguishes a response from every other JWT, also by the same key (RFC 8725 section 3.12). */
const DOOR_RESPONSE_TYPE = "door-response+jwt";
/** A door signs nothing in this protocol; if it ever does, its messages get another role. */
const ROLE = "phone";

/**
 * Verifies a badge signature, and that the phone that presents it has the key that the badge is bound to (contract
 * section 15): the phone signed this door's challenge together with this badge signature. Works offline.
 *
 * Discard the challenge after one verification, whatever its result.
 *
 * @throws RangeError as `verifyBadgeSignature` does. Nothing that a phone sends causes an error.
 */
export async function verifyPossession(
  { badgeSignature, response }: PresentedBadge,
  expected: PossessionExpectations,
): Promise<VerifiedPossession | RefusedPossession> {
  const badge = await verifyBadgeSignature(badgeSignature, expected);
  if (!badge.ok) return badge;
  const { boundKey } = badge;
  if (boundKey === null) return refused("not-bound");
  const key = await importPoint(boundKey);
  if (key === null) return refused("malformed");
  const jws = splitCompactJws(response, MAX_RESPONSE_CHARACTERS);
  if (jws === null) return refused("malformed-response");
  const headerFailure = checkHeader(jws.header);
  if (headerFailure !== null) return refused(headerFailure);
  if (!(await isEs256Signature(key, jws.signature, jws.signingInput))) return refused("bad-response-signature");
  const failure = await checkResponse(jws, badgeSignature, expected);
  return failure === null ? { ...badge, boundKey } : refused(failure);
}

function checkHeader(header: Record<string, unknown>): PossessionFailure | null {
  if (Object.hasOwn(header, "crit")) return "malformed-response";
  if (header.alg !== "ES256") return "wrong-response-algorithm";
  return header.typ === DOOR_RESPONSE_TYPE ? null : "wrong-response-type";
}

async function checkResponse(
  { payload }: CompactJws,
  badgeSignature: string,
  { doorId, challenge, applicationId, now }: PossessionExpectations,
): Promise<PossessionFailure | null> {
  const claims = parseJsonObject(payload);
  if (claims === null) return "malformed-response";
  if (claims.role !== ROLE) return "wrong-role";
  const own = readChallenge(challenge, doorId);
  if (own === null || claims.challenge !== challenge) return "wrong-challenge";
  if (isChallengeOver(own.expiresAtSeconds, now)) return "expired-challenge";
  if (claims.application_id !== applicationId) return "wrong-application";
  const hash = await sha256(badgeSignature);
  return claims.badge_signature_hash === hash ? null : "wrong-badge-signature";
}

/** Base64url of the SHA-256 of a text. */
async function sha256(text: string): Promise<string> {
  const bytes = new Uint8Array(new TextEncoder().encode(text));
  return encodeBase64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

function refused(reason: PossessionFailure): RefusedPossession {
  return { ok: false, reason };
}
