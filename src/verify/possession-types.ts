import type { BoundKey, Expectations, VerificationFailure, VerifiedBadgeSignature } from "./badge-signature.ts";

/** What a phone presents at a door. */
export interface PresentedBadge {
  /** The JWT of `POST /v1/badge/sign`. */
  badgeSignature: string;
  /** The phone's response to the challenge: a compact JWS. */
  response: string;
}

/** What a badge signature and the response must match. */
export interface PossessionExpectations extends Expectations {
  /** The door's own ID, as in `createChallenge`. */
  doorId: string;
  /** The challenge that this door has just sent to this phone. */
  challenge: string;
}

/** The phone holds the key that its badge is bound to. */
export interface VerifiedPossession extends VerifiedBadgeSignature {
  boundKey: BoundKey;
}

/** A refusal; `reason` is for logs, not for the person at the door. */
export interface RefusedPossession {
  ok: false;
  reason: PossessionFailure;
}

/**
 * Why a phone was refused, in the order of the checks: first those of the badge signature, then
 *
 * - `not-bound`: the badge signature has no `cnf`, so there is no key to prove possession of
 * - `malformed-response`: not a compact JWS, or a header with `crit`; after the signature is verified: claims that are not
 *   a JSON object
 * - `wrong-response-algorithm`: `alg` is not exactly ES256
 * - `wrong-response-type`: `typ` is not exactly door-response+jwt
 * - `bad-response-signature`: not made with the key in `cnf`
 * - `wrong-role`: not a phone's message
 * - `wrong-challenge`: not the response to this challenge, or the challenge is not one of this door
 * - `expired-challenge`: the response came too late, or the door's clock was set back
 * - `wrong-application`, `wrong-badge-signature`: made to be presented with another badge signature
 */
export type PossessionFailure =
  | VerificationFailure
  | "not-bound"
  | "malformed-response"
  | "wrong-response-algorithm"
  | "wrong-response-type"
  | "bad-response-signature"
  | "wrong-role"
  | "wrong-challenge"
  | "expired-challenge"
  | "wrong-application"
  | "wrong-badge-signature";
