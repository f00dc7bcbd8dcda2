import { base64Url } from "../../shared/identifiers.ts";
import { NONCE_CLOCK_SKEW_SECONDS, NONCE_LIFETIME_SECONDS } from "../../shared/limits/key-limits.ts";
import { deriveBytes } from "../keys/derivation.ts";

/** 128 bits, so that the nonce of a future second cannot be guessed. */
const MAC_BYTES = 16;
/** The second in which it was made, a dot, and the MAC: characters that RFC 9449 section 8.1 allows. */
const NONCE = /^([1-9][0-9]{0,11})\.[A-Za-z0-9_-]{22}$/;

const encoder = new TextEncoder();

/**
 * The nonce of this second (RFC 9449 section 8), for `DPoP-Nonce`. Nothing is stored: the second is authenticated by a MAC
 * under the application's root key, so every isolate accepts the nonces of all isolates, but of this application only.
 *
 * @param now milliseconds since 1970-01-01 UTC
 */
export function makeNonce(key: CryptoKey, now: number): Promise<string> {
  return nonceOf(key, String(Math.floor(now / 1000)));
}

/**
 * Whether the service issued this nonce at most 300 s ago (contract section 15). Only the service's own clocks count,
 * so a device with a wrong clock has no disadvantage.
 */
export async function checkNonce(key: CryptoKey, nonce: string, now: number): Promise<boolean> {
  const seconds = NONCE.exec(nonce)?.[1];
  if (seconds === undefined) return false;
  const ageSeconds = Math.floor(now / 1000) - Number(seconds);
  if (ageSeconds > NONCE_LIFETIME_SECONDS || ageSeconds < -NONCE_CLOCK_SKEW_SECONDS) return false;
  const [given, expected] = [encoder.encode(nonce), encoder.encode(await nonceOf(key, seconds))];
  // The digits are equal and the MAC has a fixed length, so timingSafeEqual gets equal lengths.
  return crypto.subtle.timingSafeEqual(given, expected);
}

async function nonceOf(key: CryptoKey, seconds: string): Promise<string> {
  const mac = await deriveBytes(key, "dpop-nonce", seconds);
  return `${seconds}.${base64Url(mac.subarray(0, MAC_BYTES))}`;
}
