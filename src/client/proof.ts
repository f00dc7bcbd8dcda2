import { toBase64Url } from "./base64.ts";
import { sha256, signJws } from "./jws.ts";
import type { ProofKey } from "./proof-key.ts";

/** RFC 9449 section 4.2 asks for at least 96 random bits. */
const JTI_BYTES = 16;

/** The request that a proof is for. */
export interface ProvenRequest {
  key: ProofKey;
  /** The called application; no other accepts the proof. */
  applicationId: string;
  /** As sent, in upper case. */
  method: string;
  /** As called; query and fragment are left out of the proof. */
  url: string;
  udid: string;
  /** Exactly what is sent. Default: no body. */
  body?: string | Uint8Array;
  /** The latest `DPoP-Nonce` of the service, if there is one. */
  nonce?: string | undefined;
  /** Milliseconds since 1970-01-01 UTC. Default `Date.now()`. With a nonce, the service ignores it. */
  now?: number;
}

/**
 * Makes a proof of possession (RFC 9449, contract section 15): the value of the `DPoP` header of this one request. A
 * request that is sent again needs a new proof.
 *
 * @throws RangeError if the key's `sign` does not return 64 bytes; also errors of `sign`
 */
export async function createDpopProof(request: ProvenRequest): Promise<string> {
  const { key, applicationId, method, url, udid, body = "", nonce, now = Date.now() } = request;
  const { kty, crv, x, y } = key.publicJwk;
  const claims = {
    aud: applicationId,
    jti: toBase64Url(crypto.getRandomValues(new Uint8Array(JTI_BYTES))),
    htm: method,
    htu: url.replace(/[?#].*$/s, ""),
    iat: Math.floor(now / 1000),
    ath: await sha256(udid),
    body_hash: await sha256(body),
    ...(nonce !== undefined && { nonce }),
  };
  return signJws(key, { typ: "dpop+jwt", jwk: { kty, crv, x, y } }, claims);
}
