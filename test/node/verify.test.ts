import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from "jose";
import { describe, expect, it } from "vitest";
import { verifyBadgeSignature } from "../../src/verify/badge-signature.ts";
import { decodeBase64Url } from "../../src/verify/encoding.ts";
import { byEffort } from "../support/effort.ts";
import { fc } from "../support/random.ts";
import { expectEach, nameOf } from "../verify/each-case.ts";
import { BAD_SIGNATURES, expectationsOf, GOOD, SIGNING_KEY, type Vector } from "../verify/vectors.ts";

const TYPE = "badge-signature+jwt";

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

  it("any text but a good JWT is refused, without an error", async () => {
    // Genuine headers and payloads are mixed in, so that some texts pass the first checks; genuine signatures are not.
    const genuine = fc.constantFrom(...GOOD.flatMap(({ jwt }) => jwt.split(".").slice(0, 2)));
    // Not `fc.string({ unit: "binary" })`, which takes a second to begin, and has no lone surrogates.
    const anyText = fc.array(fc.nat(0x10_ff_ff), { maxLength: 12 }).map((points) => String.fromCodePoint(...points));
    const part = fc.oneof(genuine, fc.base64String(), fc.json().map(base64Url), anyText);
    const text = fc.oneof(
      part,
      fc.array(part, { maxLength: 5 }).map((parts) => parts.join(".")),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...GOOD), text, async (vector, jwt) => {
        expect(await verifyBadgeSignature(jwt, expectationsOf(vector))).toMatchObject({ ok: false });
      }),
      { numRuns: byEffort(100, 1000) },
    );
  });

  it("signed claims are accepted only if each is valid", async () => {
    const key = createPrivateKey({ key: SIGNING_KEY.privateJwkForTestsOnly, format: "jwk" });
    const mostly = <T>(good: fc.Arbitrary<T>, ...others: fc.Arbitrary<unknown>[]) =>
      fc.oneof({ arbitrary: good, weight: 4 }, fc.oneof(fc.jsonValue(), ...others));
    const time = fc.integer({ min: 1_799_999_900, max: 1_800_000_200 });
    const claims = fc.record({
      sub: mostly(fc.maxSafeNat().map(String), fc.string(), fc.bigInt().map(String)),
      aud: mostly(fc.constant("app")),
      iat: mostly(time, fc.double(), fc.integer()),
      exp: mostly(fc.option(time, { nil: undefined }), fc.double()),
      client_signature: mostly(fc.base64String()),
    });
    await fc.assert(
      fc.asyncProperty(claims, async (value) => {
        const result = await verifyBadgeSignature(signed(key, value), {
          keys: { publicKey: SIGNING_KEY.spki },
          applicationId: "app",
          now: 1_800_000_060_000,
        });
        expect(result.ok).toBe(isAcceptable(value));
      }),
      { numRuns: byEffort(300, 10_000) },
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

function isAcceptable({ sub, aud, iat, exp, client_signature: clientSignature }: Record<string, unknown>): boolean {
  const isNumber = typeof sub === "string" && sub === String(Number(sub)) && Number.isSafeInteger(Number(sub));
  const isCurrent = exp === undefined || (typeof exp === "number" && Number.isSafeInteger(exp) && exp > 1_800_000_000);
  const isIssued = typeof iat === "number" && Number.isSafeInteger(iat) && iat >= 0 && iat <= 1_800_000_120;
  return isNumber && Number(sub) > 0 && aud === "app" && isIssued && isCurrent && typeof clientSignature === "string";
}

function signed(key: KeyObject, claims: object): string {
  const input = `${base64Url(JSON.stringify({ alg: "ES256", kid: "k", typ: TYPE }))}.${base64Url(JSON.stringify(claims))}`;
  return `${input}.${sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}

function base64Url(text: string): string {
  return Buffer.from(text).toString("base64url");
}
