import { encodeBase64Url } from "./encoding.ts";

/** The fixed start of everything that a phone signs for a door. Each version has its own. */
const CONTEXT = "badge-possession-v1";
const DOOR_ID = /^[A-Za-z0-9_-]{1,64}$/;
/** Context, door, random bits and expiry, each without a dot, so that the text is unambiguous. */
const CHALLENGE = /^badge-possession-v1\.([A-Za-z0-9_-]{1,64})\.[A-Za-z0-9_-]{43}\.([1-9][0-9]{0,11})$/;
const RANDOM_BYTES = 32;
const DEFAULT_LIFETIME_SECONDS = 10;
/** Also limits how long a challenge stays valid if the door's clock is set back. */
const MAX_LIFETIME_SECONDS = 60;
/** Keeps the expiry within the twelve digits of the form, because a phone responds to no other. */
const TIMES_END_MILLISECONDS = 1e14;

/** A door's choices for a challenge. */
export interface NewChallenge {
  /** The door's own name: 1 to 64 characters out of `A-Z a-z 0-9 _ -`, unique among the doors of the application. */
  doorId: string;
  /** Milliseconds since 1970-01-01 UTC, by the door's clock: `Date.now()`. */
  now: number;
  /** How long the phone may take: whole seconds from 1 to 60. Default 10. */
  lifetimeSeconds?: number;
}

/**
 * Creates a challenge for one phone: ASCII text, which the door sends and keeps until it has the response. Never send a
 * challenge twice: its 256 random bits make an old response invalid.
 *
 * @throws RangeError for an argument that is not as described
 */
export function createChallenge({ doorId, now, lifetimeSeconds = DEFAULT_LIFETIME_SECONDS }: NewChallenge): string {
  if (typeof doorId !== "string" || !DOOR_ID.test(doorId)) throw new RangeError("doorId has another form");
  if (!(Number.isFinite(now) && now >= 1000 && now < TIMES_END_MILLISECONDS))
    throw new RangeError("now is not a time in milliseconds");
  if (!(Number.isInteger(lifetimeSeconds) && lifetimeSeconds >= 1 && lifetimeSeconds <= MAX_LIFETIME_SECONDS))
    throw new RangeError("lifetimeSeconds is not a whole number from 1 to 60");
  const random = encodeBase64Url(crypto.getRandomValues(new Uint8Array(RANDOM_BYTES)));
  return `${CONTEXT}.${doorId}.${random}.${Math.floor(now / 1000) + lifetimeSeconds}`;
}

/** Whether `challenge` is one of this door; null for anything else. */
export function readChallenge(challenge: unknown, doorId: string): { expiresAtSeconds: number } | null {
  const parts = typeof challenge === "string" ? CHALLENGE.exec(challenge) : null;
  return parts?.[1] === doorId ? { expiresAtSeconds: Number(parts[2]) } : null;
}

/** Whether a challenge has expired, or the door's clock was set back since it was made. */
export function isChallengeOver(expiresAtSeconds: number, now: number): boolean {
  const leftSeconds = expiresAtSeconds - Math.floor(now / 1000);
  return leftSeconds <= 0 || leftSeconds > MAX_LIFETIME_SECONDS;
}
