import { calculateJwkThumbprint, exportJWK } from "jose";
import { type ApplicationId, digestOf, newApplicationSecret, newSecretId } from "./identifiers.ts";
import { exportDer, type SealLabel, toBase64 } from "./sealing.ts";

/**
 * Creates an application's credentials. This needs only the public half of a sealing key, which cannot open them again
 * (contract section 9). Runs on Workers and on Node.
 */

/** Seals values to one sealing key. */
export interface Sealer {
  version: number;
  seal(label: SealLabel, plaintext: BufferSource): Promise<string>;
}

const ROOT_KEY_BYTES = 32;

/**
 * A new secret: its row for D1, and the secret itself, which is shown once and never stored.
 *
 * @param secret random, except for the demo application
 */
export async function makeSecret(sealer: Sealer, applicationId: ApplicationId, secret = newApplicationSecret()) {
  const id = newSecretId();
  const sealed = await sealer.seal(
    { purpose: "application-secret", applicationId, id },
    new Uint8Array(new TextEncoder().encode(secret)),
  );
  return { row: { id, digest: await digestOf(secret), sealed, sealingVersion: sealer.version }, secret };
}

/** A secret for a person. It only authenticates, and is never opened again, so it is not sealed. */
export async function makeConsoleSecret() {
  const secret = newApplicationSecret();
  return { row: { id: newSecretId(), digest: await digestOf(secret) }, secret };
}

export type NewSigningKey = Awaited<ReturnType<typeof makeSigningKey>>;

const KEYS_OF_A_MILLISECOND = 4096;

/** From the time and random bits, below 2^53 until the year 2039: an ID is never used again, even after a restore. */
function newSigningKeyId(now: number): number {
  const [random = 0] = crypto.getRandomValues(new Uint16Array(1));
  lastKeyId = Math.max(lastKeyId + 1, now * KEYS_OF_A_MILLISECOND + (random % KEYS_OF_A_MILLISECOND));
  return lastKeyId;
}

let lastKeyId = 0;

/** A new ECDSA P-256 key with its private half sealed. */
export async function makeSigningKey(sealer: Sealer, applicationId: ApplicationId) {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  if (!("publicKey" in pair)) throw new Error("expected an ECDSA key pair");
  const kid = await calculateJwkThumbprint(await exportJWK(pair.publicKey), "sha256");
  const privateKey = await exportDer("pkcs8", pair.privateKey);
  return {
    /** Higher than that of any earlier key. */
    id: newSigningKeyId(Date.now()),
    kid,
    publicKey: toBase64(await exportDer("spki", pair.publicKey)),
    sealed: await sealer.seal({ purpose: "signing-key", applicationId, id: kid }, privateKey),
    sealingVersion: sealer.version,
  };
}

/** A new root key, sealed: an HMAC key, from which device IDs, number orders, nonces and invitation tokens are derived. */
export function makeRootKey(sealer: Sealer, applicationId: ApplicationId): Promise<string> {
  const label: SealLabel = { purpose: "device-key", applicationId, id: applicationId };
  return sealer.seal(label, crypto.getRandomValues(new Uint8Array(ROOT_KEY_BYTES)));
}

/**
 * The key that new badges get (contract section 10): the newest one whose `signsFrom` has passed. An older key never
 * replaces a newer one, even if its `signsFrom` is later: `key rotate --now` overtakes a scheduled rotation.
 *
 * @param keys of one application, oldest first
 * @param now milliseconds
 */
export function currentSigningKey<Key extends { signsFrom: number }>(keys: readonly [Key, ...Key[]], now: number): Key {
  return keys.findLast(({ signsFrom }) => signsFrom <= now) ?? keys[0];
}
