import { splitCompactJws } from "./compact-jws.ts";
import { isEs256Signature, trustedKey } from "./public-keys.ts";
import type { JwkSet, JwtFailure, SinglePublicKey } from "./types.ts";

/** One kind of JWT that the service signs. The kinds share keys, so each has a `typ` of its own (RFC 8725 section 3.12). */
export interface JwtKind {
  type: string;
  maxCharacters: number;
}

/** A JWT whose signature is verified; its claims are not yet parsed. */
export interface SignedJwt {
  payload: Uint8Array<ArrayBuffer>;
  keyId: string;
}

/** Verifies that one of `keys` signed this JWT and that it is of this kind. */
export async function verifySignedJwt(
  jwt: string,
  kind: JwtKind,
  keys: JwkSet | SinglePublicKey,
): Promise<SignedJwt | JwtFailure> {
  const jws = splitCompactJws(jwt, kind.maxCharacters);
  if (jws === null) return "malformed";
  const header = checkHeader(jws.header, kind);
  if (typeof header === "string") return header;
  const key = await trustedKey(keys, header.keyId);
  if (key === null) return "unknown-key";
  if (!(await isEs256Signature(key, jws.signature, jws.signingInput))) return "bad-signature";
  return { payload: jws.payload, keyId: header.keyId };
}

/** Checks the header before a key is chosen, so that a JWT cannot choose how it is verified. */
function checkHeader(header: Record<string, unknown>, { type }: JwtKind): { keyId: string } | JwtFailure {
  // A JWS with an extension that is not understood must be refused; this profile has no extensions (RFC 7515 section 4.1.11).
  if (Object.hasOwn(header, "crit")) return "malformed";
  // Refuses `none`, an HMAC keyed with the public key, and other curves (RFC 8725 sections 2.1 and 3.1).
  if (header.alg !== "ES256") return "wrong-algorithm";
  if (header.typ !== type) return "wrong-type";
  return typeof header.kid === "string" ? { keyId: header.kid } : "malformed";
}
