import { spawnSync } from "node:child_process";
import { createPublicKey, type KeyObject, verify } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from "jose";
import { expect } from "vitest";
import type { Vector } from "../verify/vectors.ts";

/** Whether node:crypto accepts the signature of a vector. */
export function acceptedByNodeCrypto(vector: Vector): boolean {
  const { input, signature } = split(vector.jwt);
  return verify("sha256", Buffer.from(input), { key: publicKeyOf(vector), dsaEncoding: "ieee-p1363" }, signature);
}

/** Whether jose accepts the JWT of a vector, claims included. Throws if jose refuses it for anything but the signature. */
export async function acceptedByJose(vector: Vector): Promise<boolean> {
  const { publicKeys, maxAgeSeconds, applicationId, nowSeconds, clockToleranceSeconds } = vector;
  const options = {
    algorithms: ["ES256"],
    typ: "badge-signature+jwt",
    audience: applicationId,
    currentDate: new Date(nowSeconds * 1000),
    clockTolerance: clockToleranceSeconds,
    ...(maxAgeSeconds === undefined ? {} : { maxTokenAge: maxAgeSeconds }),
  };
  try {
    if (publicKeys === undefined) await jwtVerify(vector.jwt, publicKeyOf(vector), options);
    else await jwtVerify(vector.jwt, createLocalJWKSet(publicKeys), options);
    return true;
  } catch (error) {
    // Refused for its signature, not for a missing key or a claim.
    expect(error).toMatchObject({ code: "ERR_JWS_SIGNATURE_VERIFICATION_FAILED" });
    return false;
  }
}

/** Whether the openssl command accepts the signature of a vector. */
export function acceptedByOpenssl(vector: Vector): boolean {
  const { input, signature } = split(vector.jwt);
  // openssl takes ECDSA signatures as DER, and only 64 octets, r and s, can be converted.
  if (signature.length !== 64) return false;
  const folder = mkdtempSync(join(tmpdir(), "verify-"));
  try {
    const file = (name: string, content: string | Buffer) => {
      writeFileSync(join(folder, name), content);
      return join(folder, name);
    };
    const key = file("key.pem", publicKeyOf(vector).export({ type: "spki", format: "pem" }));
    const signatureFile = file("signature.der", derSignature(signature));
    const data = file("data", input);
    return spawnSync("openssl", ["dgst", "-sha256", "-verify", key, "-signature", signatureFile, data]).status === 0;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Whether the openssl command is installed. */
export function hasOpenssl(): boolean {
  return spawnSync("openssl", ["version"]).status === 0;
}

/** Splits a JWT without the code under test. */
function split(jwt: string): { input: string; signature: Buffer } {
  const end = jwt.lastIndexOf(".");
  return { input: jwt.slice(0, end), signature: Buffer.from(jwt.slice(end + 1), "base64url") };
}

/** The case's SPKI, or the ES256 key of its set that the JWT's `kid` names. */
function publicKeyOf({ jwt, publicKeys, publicKey = "" }: Vector): KeyObject {
  if (publicKeys === undefined) {
    return createPublicKey({ key: Buffer.from(publicKey, "base64"), format: "der", type: "spki" });
  }
  const { kid } = decodeProtectedHeader(jwt);
  const jwk = publicKeys.keys.find((key) => key.kid === kid && key.crv === "P-256" && key.use !== "enc");
  if (jwk === undefined) throw new Error("no such key");
  return createPublicKey({ key: jwk, format: "jwk" });
}

/** SEQUENCE of the INTEGERs r and s (RFC 3279 section 2.2.3). */
function derSignature(raw: Buffer): Buffer {
  const body = Buffer.concat([derInteger(raw.subarray(0, 32)), derInteger(raw.subarray(32))]);
  return Buffer.concat([Buffer.from([0x30, body.length]), body]);
}

/** The shortest encoding, with a zero octet in front if the highest bit is set (X.690 section 8.3). */
function derInteger(octets: Buffer): Buffer {
  const first = octets.findIndex((octet) => octet !== 0);
  const shortest = first < 0 ? Buffer.from([0]) : octets.subarray(first);
  const padded = shortest.readUInt8(0) >= 128 ? Buffer.concat([Buffer.from([0]), shortest]) : shortest;
  return Buffer.concat([Buffer.from([0x02, padded.length]), padded]);
}
