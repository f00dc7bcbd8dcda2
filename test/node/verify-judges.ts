import { createPublicKey, type KeyObject, verify } from "node:crypto";
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
