import { toBase64Url } from "./base64.ts";
import type { ProofKey } from "./proof-key.ts";

/** r and s, 32 bytes each (RFC 7518 section 3.4). */
const SIGNATURE_BYTES = 64;

/**
 * A compact JWS, ES256 (RFC 7515 section 7.1).
 *
 * @throws RangeError if `sign` does not return 64 bytes; also errors of `sign`
 */
export async function signJws(key: ProofKey, header: { typ: string; jwk?: object }, claims: object): Promise<string> {
  const part = (value: object) => toBase64Url(new TextEncoder().encode(JSON.stringify(value)));
  const input = `${part({ alg: "ES256", ...header })}.${part(claims)}`;
  const signature = await key.sign(new Uint8Array(new TextEncoder().encode(input)));
  if (signature.length !== SIGNATURE_BYTES)
    throw new RangeError("the key's sign must return r and s, 64 bytes; rawSignatureFromDer converts DER");
  return `${input}.${toBase64Url(signature)}`;
}

/** SHA-256 of a text's UTF-8 or of bytes, base64url. */
export async function sha256(content: string | Uint8Array): Promise<string> {
  const bytes = new Uint8Array(typeof content === "string" ? new TextEncoder().encode(content) : content);
  return toBase64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}
