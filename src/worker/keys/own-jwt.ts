import { base64Url } from "../../shared/identifiers.ts";
import type { SigningKey } from "../applications/application-cache.ts";

/**
 * Signs the service's own JWTs with ES256 in the compact form (RFC 7515 section 7.1, RFC 7518 section 3.4). jose is not
 * used here, because it would check an unchanging header and key anew for each signature. It verifies JWTs from outside.
 */

const ES256 = { name: "ECDSA", hash: "SHA-256" };
const encoder = new TextEncoder();

/** Encoded headers of one `typ`, cached by signing key. An isolate keeps a signing key as long as its application. */
export class JwtHeaders {
  readonly #typ: string;
  readonly #encoded = new WeakMap<SigningKey, string>();

  constructor(typ: string) {
    this.#typ = typ;
  }

  of(key: SigningKey): string {
    const known = this.#encoded.get(key);
    if (known !== undefined) return known;
    const encoded = encodePart({ alg: "ES256", kid: key.kid, typ: this.#typ });
    this.#encoded.set(key, encoded);
    return encoded;
  }
}

/** @param header from `JwtHeaders` @param privateKey of the key that the header names */
export async function signJwt(header: string, claims: object, privateKey: CryptoKey): Promise<string> {
  const content = `${header}.${encodePart(claims)}`;
  const signature = await crypto.subtle.sign(ES256, privateKey, encoder.encode(content));
  return `${content}.${base64Url(new Uint8Array(signature))}`;
}

const encodePart = (part: object): string => base64Url(encoder.encode(JSON.stringify(part)));
