import { type KeyObject, sign } from "node:crypto";
import { SIGNING_KEY } from "./keys.ts";

/** Members of a header or of the claims, of any type. */
export type Members = Record<string, unknown>;

export const APPLICATION_ID = "app_0123456789abcdefghjk";
export const BADGE_NUMBER = "1004711815";
/** Base64 with padding and with both characters that base64url replaces. */
export const CLIENT_SIGNATURE = "+/7dyLT/PkZG9vciA3+/A==";
/** NumericDates: seconds since 1970-01-01 UTC. */
export const ISSUED_AT = 1_800_000_000;
export const EXPIRES_AT = ISSUED_AT + 300;

export const HEADER = { alg: "ES256", kid: SIGNING_KEY.kid, typ: "badge-signature+jwt" };
export const CLAIMS = {
  sub: BADGE_NUMBER,
  aud: APPLICATION_ID,
  iat: ISSUED_AT,
  exp: EXPIRES_AT,
  client_signature: CLIENT_SIGNATURE,
};

/** The claims without the named ones. */
export function claimsWithout(...names: string[]): Members {
  return Object.fromEntries(Object.entries(CLAIMS).filter(([name]) => !names.includes(name)));
}

/** Base64url of a text, of bytes, or of a value's JSON. */
export function part(value: Members | string | Buffer): string {
  const bytes = typeof value === "string" || Buffer.isBuffer(value) ? value : JSON.stringify(value);
  return Buffer.from(bytes).toString("base64url");
}

/** A JWT as the service makes it, unless the arguments say otherwise. */
export function makeJwt(options: { header?: Members | string | Buffer; claims?: Members | string | Buffer } = {}) {
  return signedParts(part(options.header ?? HEADER), part(options.claims ?? CLAIMS));
}

/** Signs two parts as they are, so that only a strict decoder finds a fault. */
export function signedParts(header: string, payload: string, key: KeyObject = SIGNING_KEY.privateKey): string {
  return withSignature(`${header}.${payload}`, rawSignature(`${header}.${payload}`, key));
}

export function withSignature(signingInput: string, signature: Buffer): string {
  return `${signingInput}.${signature.toString("base64url")}`;
}

/** An ECDSA signature in the format of JOSE: r and s concatenated (RFC 7518 section 3.4). */
export function rawSignature(data: string, key: KeyObject = SIGNING_KEY.privateKey, hash = "sha256"): Buffer {
  return sign(hash, Buffer.from(data), { key, dsaEncoding: "ieee-p1363" });
}

/** Signs until a signature has the wanted property; each ECDSA signature is different. */
export function signatureWith(data: string, wanted: (signature: Buffer) => boolean): Buffer {
  for (;;) {
    const signature = rawSignature(data);
    if (wanted(signature)) return signature;
  }
}
