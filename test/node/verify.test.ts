import { createPublicKey, type KeyObject } from "node:crypto";
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from "jose";
import { describe, expect, it } from "vitest";
import { verifyBadgeSignature } from "../../src/verify/badge-signature.ts";
import { decodeBase64Url } from "../../src/verify/encoding.ts";
import { byEffort } from "../support/effort.ts";
import { fc } from "../support/random.ts";
import { expectEach, nameOf } from "../verify/each-case.ts";
import { BAD_SIGNATURES, expectationsOf, GOOD, type Vector } from "../verify/vectors.ts";

/** Whether jose accepts the JWT of a vector, claims included. Throws if jose refuses it for anything but the signature. */
async function acceptedByJose(vector: Vector): Promise<boolean> {
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

describe("the published vectors (contract section 3)", () => {
  it("jose, an independent implementation, accepts the good vectors and refuses those with a bad signature", async () => {
    await expectEach([...GOOD, ...BAD_SIGNATURES], nameOf, {
      actual: acceptedByJose,
      expected: ({ expected }) => expected === "ok",
    });
  });
});

describe("any input (contract section 3)", () => {
  it("any changed byte of a good JWT is refused", async () => {
    const change = fc.record({
      vector: fc.constantFrom(...GOOD),
      position: fc.nat({ max: 10_000 }),
      mask: fc.integer({ min: 1, max: 255 }),
    });
    await fc.assert(
      fc.asyncProperty(change, async ({ vector, position, mask }) => {
        const bytes = Buffer.from(vector.jwt, "latin1");
        const index = position % bytes.length;
        bytes.writeUInt8(bytes.readUInt8(index) ^ mask, index);
        expect(await verifyBadgeSignature(bytes.toString("latin1"), expectationsOf(vector))).toMatchObject({
          ok: false,
        });
      }),
      { numRuns: byEffort(300, 20_000) },
    );
  });

  it("base64url is accepted only in its canonical form", () => {
    const text = fc.oneof(fc.base64String(), fc.string({ unit: fc.constantFrom(..."AQgwZ_-+/= \n") }));
    fc.assert(
      fc.property(text, (candidate) => {
        const bytes = Buffer.from(candidate, "base64url");
        const expected = bytes.toString("base64url") === candidate ? [...bytes] : null;
        const decoded = decodeBase64Url(candidate);
        expect(decoded === null ? null : [...decoded]).toEqual(expected);
      }),
      { numRuns: byEffort(300, 10_000) },
    );
  });
});
