import type { ApplicationId } from "./identifiers.ts";

/**
 * Sealing: RSA-OAEP (RFC 8017 section 7.1) with SHA-256 and a 3072-bit key. Anybody with the public half can seal; only
 * the Worker has the private half, as a secret, and can open (contract section 9). Runs on Workers and on Node.
 */

const RSA_OAEP = { name: "RSA-OAEP", hash: "SHA-256" } as const;
const RSA_BITS = 3072;

/** The purpose of a sealed value. It is the OAEP label, so a value opens only with the label that it was sealed with. */
export interface SealLabel {
  purpose: "application-secret" | "signing-key" | "device-key";
  applicationId: ApplicationId;
  /** ID of the sealed thing within the application: the secret's ID, the key's `kid`; for a root key (`device-key`) the application ID. */
  id: string;
}

/** A new sealing key: the public half for D1, the private half for the Worker's secret. Both DER as base64. */
export async function generateSealingKey(): Promise<{ publicKey: string; privateKey: string }> {
  const pair = await crypto.subtle.generateKey(
    { ...RSA_OAEP, modulusLength: RSA_BITS, publicExponent: new Uint8Array([1, 0, 1]) },
    true,
    ["encrypt", "decrypt"],
  );
  if (!("publicKey" in pair)) throw new Error("expected an RSA key pair");
  return {
    publicKey: toBase64(await exportDer("spki", pair.publicKey)),
    privateKey: toBase64(await exportDer("pkcs8", pair.privateKey)),
  };
}

/** @param spki base64 of the SPKI DER */
export function importSealingPublicKey(spki: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("spki", fromBase64(spki), RSA_OAEP, false, ["encrypt"]);
}

/** @param pkcs8 base64 of the PKCS #8 DER */
export function importSealingPrivateKey(pkcs8: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("pkcs8", fromBase64(pkcs8), RSA_OAEP, false, ["decrypt", "unwrapKey"]);
}

/** The public half of a sealing key, to seal to. @param pkcs8 base64 of the private half's PKCS #8 DER */
export async function derivePublicKey(pkcs8: string): Promise<CryptoKey> {
  const privateKey = await crypto.subtle.importKey("pkcs8", fromBase64(pkcs8), RSA_OAEP, true, ["decrypt"]);
  const jwk = await crypto.subtle.exportKey("jwk", privateKey);
  if (jwk instanceof ArrayBuffer || jwk.n === undefined || jwk.e === undefined) throw new Error("not an RSA key");
  const publicJwk = { kty: "RSA", n: jwk.n, e: jwk.e };
  return crypto.subtle.importKey("jwk", publicJwk, RSA_OAEP, true, ["encrypt"]);
}

/** Seals at most 318 bytes (RFC 8017: 384 - 2 * 32 - 2). The result is base64. */
export async function seal(publicKey: CryptoKey, label: SealLabel, plaintext: BufferSource): Promise<string> {
  const algorithm = { name: RSA_OAEP.name, label: labelBytes(label) };
  return toBase64(new Uint8Array(await crypto.subtle.encrypt(algorithm, publicKey, plaintext)));
}

/** Opens a sealed value to bytes, for re-sealing only. Everything else unwraps it as a non-extractable key. */
export async function open(privateKey: CryptoKey, label: SealLabel, sealed: string): Promise<Uint8Array<ArrayBuffer>> {
  const algorithm = { name: RSA_OAEP.name, label: labelBytes(label) };
  return new Uint8Array(await crypto.subtle.decrypt(algorithm, privateKey, fromBase64(sealed)));
}

/** Opens a sealed P-256 private key (PKCS #8) as a non-extractable signing key. */
export function unwrapSigningKey(privateKey: CryptoKey, label: SealLabel, sealed: string): Promise<CryptoKey> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  return unwrap(privateKey, label, sealed, "pkcs8", algorithm);
}

/** Opens sealed bytes as a non-extractable HMAC key. */
export function unwrapHmacKey(
  privateKey: CryptoKey,
  label: SealLabel,
  sealed: string,
  hash: "SHA-1" | "SHA-256",
): Promise<CryptoKey> {
  return unwrap(privateKey, label, sealed, "raw", { name: "HMAC", hash });
}

function unwrap(
  privateKey: CryptoKey,
  label: SealLabel,
  sealed: string,
  format: "pkcs8" | "raw",
  algorithm: { name: string; hash?: string; namedCurve?: string },
): Promise<CryptoKey> {
  const unwrapAlgorithm = { name: RSA_OAEP.name, label: labelBytes(label) };
  return crypto.subtle.unwrapKey(format, fromBase64(sealed), privateKey, unwrapAlgorithm, algorithm, false, ["sign"]);
}

/** IDs contain no line feed, so no two labels have the same bytes. */
function labelBytes({ purpose, applicationId, id }: SealLabel): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new TextEncoder().encode([purpose, applicationId, id].join("\n")));
}

/** Exports a key in a format that consists of bytes. */
export async function exportDer(format: "spki" | "pkcs8" | "raw", key: CryptoKey): Promise<Uint8Array<ArrayBuffer>> {
  const exported = await crypto.subtle.exportKey(format, key);
  if (!(exported instanceof ArrayBuffer)) throw new Error("expected the exported key as bytes");
  return new Uint8Array(exported);
}

export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index++) bytes[index] = binary.charCodeAt(index);
  return bytes;
}
