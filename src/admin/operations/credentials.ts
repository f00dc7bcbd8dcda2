import { calculateJwkThumbprint, exportJWK } from "jose";
import { exportDer, toBase64 } from "../../applications/sealing.ts";
import { base64Url, newApplicationSecret, newSecretId } from "../../identifiers.ts";
import type { Sealer } from "./sealer.ts";

/** A new secret: the row for D1 and, beside it, the secret itself, which is shown once and kept nowhere. */
export interface NewSecret {
  row: { id: string; digest: string; sealed: string; sealingVersion: number };
  secret: string;
}

/** @param secret another than a random one: only for the demo application, whose secret is chosen beforehand */
export async function makeSecret(
  sealer: Sealer,
  applicationId: string,
  secret: string = newApplicationSecret(),
): Promise<NewSecret> {
  const id = newSecretId();
  const bytes = new TextEncoder().encode(secret);
  const digest = base64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
  const sealed = await sealer.seal({ purpose: "application-secret", applicationId, id }, bytes);
  return { row: { id, digest, sealed, sealingVersion: sealer.version }, secret };
}

export interface NewSigningKey {
  kid: string;
  publicKey: string;
  sealed: string;
  sealingVersion: number;
}

/** A new ECDSA P-256 key, its private half sealed. */
export async function makeSigningKey(sealer: Sealer, applicationId: string): Promise<NewSigningKey> {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const kid = await calculateJwkThumbprint(await exportJWK(pair.publicKey), "sha256");
  const privateKey = await exportDer("pkcs8", pair.privateKey);
  return {
    kid,
    publicKey: toBase64(await exportDer("spki", pair.publicKey)),
    sealed: await sealer.seal({ purpose: "signing-key", applicationId, id: kid }, privateKey),
    sealingVersion: sealer.version,
  };
}

/** A new HMAC key that turns udids into devices, sealed. */
export function makeDeviceKey(sealer: Sealer, applicationId: string): Promise<string> {
  const label = { purpose: "device-key", applicationId, id: applicationId } as const;
  return sealer.seal(label, crypto.getRandomValues(new Uint8Array(32)));
}
