import { base64url, exportJWK, generateKeyPair } from "jose";
import { digestOf } from "../../src/shared/identifiers.ts";
import { type ProvenCall, verifyDpopProof } from "../../src/worker/dpop/verify-proof.ts";

const encoder = new TextEncoder();

/** The service's clock: 2027-01-15T08:00:00Z. */
export const NOW_SECONDS = 1_800_000_000;
export const URL_OF_CALL = "https://badges.example.com/v1/badge";
export const APPLICATION_ID = "app_0123456789abcdefghjk";
export const UDID = "phone-7";
export const BODY = '{"userId":"alice"}';

export type Members = Record<string, unknown>;

export async function newKey() {
  const pair = await generateKeyPair("ES256");
  const { x = "", y = "" } = await exportJWK(pair.publicKey);
  return { pair, jwk: { kty: "EC", crv: "P-256", x, y } as const };
}

export const KEY = await newKey();
export const OTHER_KEY = await newKey();

/** Stands in for an application's root key, which is opened for signing alone. */
export const newNonceKey = () =>
  crypto.subtle.importKey("raw", crypto.getRandomValues(new Uint8Array(32)), { name: "HMAC", hash: "SHA-256" }, false, [
    "sign",
  ]);
export const NONCE_KEY = await newNonceKey();

export const CALL: ProvenCall = {
  method: "POST",
  urls: [URL_OF_CALL],
  applicationId: APPLICATION_ID,
  udid: UDID,
  bodyHash: await digestOf(BODY),
  now: NOW_SECONDS * 1000,
  nonceKey: NONCE_KEY,
};

export const HEADER = { typ: "dpop+jwt", alg: "ES256", jwk: KEY.jwk };
export const CLAIMS = {
  aud: APPLICATION_ID,
  jti: "6f1b1f6e-6f0e-4f57-9d5b-3b1c4f0a9e11",
  htm: "POST",
  htu: URL_OF_CALL,
  iat: NOW_SECONDS,
  ath: await digestOf(UDID),
  body_hash: CALL.bodyHash,
};

/** Base64url of a text, of bytes, or of a value's JSON. */
export function part(value: Members | string | Uint8Array): string {
  if (value instanceof Uint8Array) return base64url.encode(value);
  return base64url.encode(typeof value === "string" ? value : JSON.stringify(value));
}

/** Signs two parts as they are, so that nothing but what they contain is wrong. */
export async function signParts(header: string, payload: string, key = KEY): Promise<string> {
  const input = `${header}.${payload}`;
  const signature = await crypto.subtle.sign(
    { name: "ECDSA", hash: "SHA-256" },
    key.pair.privateKey,
    encoder.encode(input),
  );
  return `${input}.${base64url.encode(new Uint8Array(signature))}`;
}

/** A good proof, but for the changes. */
export const makeProof = (changes: { header?: Members; claims?: Members; key?: typeof KEY } = {}): Promise<string> =>
  signParts(part({ ...HEADER, ...changes.header }), part({ ...CLAIMS, ...changes.claims }), changes.key);

/** What becomes of a proof: the public code and the reason, or "accepted". */
export async function outcomeOf(proof: string, call: Partial<ProvenCall> = {}): Promise<string> {
  const result = await verifyDpopProof(proof, { ...CALL, ...call });
  return result.ok ? "accepted" : `${result.code} ${result.reason}`;
}
