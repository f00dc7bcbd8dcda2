import { base64Url } from "../../shared/identifiers.ts";
import type { SigningKey } from "../applications/application-cache.ts";

/**
 * JWTs that the service itself signs, by ES256 in the compact form (RFC 7515 section 7.1, RFC 7518 section 3.4). jose would check a
 * header and a key that never change, for each signature anew; it verifies what comes from outside.
 */

const ES256 = { name: "ECDSA", hash: "SHA-256" };
const encoder = new TextEncoder();

/** Encoded headers of one `typ`. They follow from the keys, which an isolate keeps as long as their application. */
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

/** @param header as `JwtHeaders` has it @param privateKey of the key that the header names */
export async function signJwt(header: string, claims: object, privateKey: CryptoKey): Promise<string> {
  const content = `${header}.${encodePart(claims)}`;
  const signature = await crypto.subtle.sign(ES256, privateKey, encoder.encode(content));
  return `${content}.${base64Url(new Uint8Array(signature))}`;
}

const encodePart = (part: object): string => base64Url(encoder.encode(JSON.stringify(part)));
