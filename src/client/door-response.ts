import { sha256, signJws } from "./jws.ts";
import type { ProofKey } from "./proof-key.ts";

/** As `createChallenge` of `@badge-distribution/verify` makes it. A phone signs nothing else for a door. */
const CHALLENGE = /^badge-possession-v1\.[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_-]{43}\.[1-9][0-9]{0,11}$/;

/** A door's challenge, and what the phone presents there. */
export interface DoorChallenge {
  /** The key that the badge is bound to. */
  key: ProofKey;
  /** As the door sent it. */
  challenge: string;
  applicationId: string;
  /** The result of `sign`, exactly as it is presented at this door. */
  badgeSignature: string;
}

/**
 * Responds to a door that asks for proof that this phone holds the key of its badge. The phone's
 * clock does not matter: the door decides whether the challenge is still valid.
 *
 * @returns a compact JWS, to be sent to the door together with the badge signature
 * @throws RangeError for a malformed challenge, or if the key's `sign` does not return 64 bytes; also errors of `sign`
 */
export async function createDoorResponse({
  key,
  challenge,
  applicationId,
  badgeSignature,
}: DoorChallenge): Promise<string> {
  if (!CHALLENGE.test(challenge)) throw new RangeError("not a challenge of a door");
  const claims = {
    role: "phone",
    challenge,
    application_id: applicationId,
    badge_signature_hash: await sha256(badgeSignature),
  };
  return signJws(key, { typ: "door-response+jwt" }, claims);
}
