import { OTHER_KEY, P256_ORDER, P384_KEY, SIGNING_KEY } from "./keys.ts";
import {
  BADGE_NUMBER,
  CLAIMS,
  CLIENT_SIGNATURE,
  claimsWithout,
  EXPIRES_AT,
  HEADER,
  ISSUED_AT,
  makeJwt,
  part,
  signatureWith,
  signedParts,
  withSignature,
} from "./tokens.ts";
import { accept, IN_SET, KEY_SET, type Vector } from "./vector.ts";

/** Everything a verifier must accept. */
export function acceptedVectors(): Vector[] {
  return [...keyVectors(), ...timeVectors(), ...notBeforeVectors(), ...contentVectors(), ...signatureVectors()];
}

function keyVectors(): Vector[] {
  const jwt = makeJwt();
  const { x = "", y = "", kid } = SIGNING_KEY.publicJwk;
  const bare = { kty: "EC", crv: "P-256", x, y, kid: kid ?? "" };
  const rsa = { kty: "RSA", n: "sXchxA", e: "AQAB", kid: "rsa", use: "sig" };
  const otherJwt = signedParts(part({ ...HEADER, kid: OTHER_KEY.kid }), part(CLAIMS), OTHER_KEY.privateKey);
  const renamed = makeJwt({ header: { ...HEADER, kid: "another-name" } });
  return [
    accept("a key set of one key", jwt, { publicKeys: { keys: [SIGNING_KEY.publicJwk] } }),
    accept("a key set of two keys, the signing key second", jwt, IN_SET),
    accept("signed by the first key of the set", otherJwt, { ...IN_SET, keyId: OTHER_KEY.kid }),
    accept("a key set with keys of other kinds", jwt, {
      publicKeys: { keys: [rsa, P384_KEY.publicJwk, { kty: "unheard-of" }, ...KEY_SET.keys] },
    }),
    accept("a key that does not say its use or algorithm", jwt, { publicKeys: { keys: [bare] } }),
    accept("a key whose key_ops is verify", jwt, { publicKeys: { keys: [{ ...bare, key_ops: ["verify"] }] } }),
    accept("a key for encryption with the same kid beside the right one", jwt, {
      publicKeys: { keys: [{ ...OTHER_KEY.publicJwk, kid: SIGNING_KEY.kid, use: "enc" }, SIGNING_KEY.publicJwk] },
    }),
    accept("one key as SPKI", jwt),
    accept("one key as SPKI, whatever kid says", renamed, { keyId: "another-name" }),
  ];
}

function timeVectors(): Vector[] {
  const jwt = makeJwt();
  const claims = claimsWithout("exp");
  const eternal = makeJwt({ claims });
  return [
    accept("no expiry", eternal, { claims, ...IN_SET }),
    accept("no expiry, ten years later", eternal, { claims, nowSeconds: ISSUED_AT + 315_360_000 }),
    accept("no expiry, as SPKI", eternal, { claims }),
    accept("one second before the expiry", jwt, { nowSeconds: EXPIRES_AT - 1, clockToleranceSeconds: 0 }),
    accept("the last second within the tolerance after the expiry", jwt, { nowSeconds: EXPIRES_AT + 59 }),
    accept("the second of issue", jwt, { nowSeconds: ISSUED_AT, clockToleranceSeconds: 0 }),
    accept("issued in the future, just within the tolerance", jwt, { nowSeconds: ISSUED_AT - 60 }),
    accept("exactly the greatest age", eternal, {
      claims,
      nowSeconds: ISSUED_AT + 120,
      clockToleranceSeconds: 0,
      maxAgeSeconds: 120,
    }),
    accept("the greatest age and the tolerance", eternal, {
      claims,
      nowSeconds: ISSUED_AT + 180,
      maxAgeSeconds: 120,
    }),
  ];
}

function notBeforeVectors(): Vector[] {
  const claims = { ...CLAIMS, nbf: ISSUED_AT + 120 };
  const jwt = makeJwt({ claims });
  return [
    accept("at its nbf", jwt, { claims, nowSeconds: ISSUED_AT + 120, clockToleranceSeconds: 0 }),
    accept("before its nbf, just within the tolerance", jwt, { claims, nowSeconds: ISSUED_AT + 60 }),
  ];
}

function contentVectors(): Vector[] {
  const withExtra = { ...CLAIMS, jti: "7f1c", "https://example.com/level": 3 };
  const attackersHints = { ...HEADER, jku: "https://attacker.example/jwks.json", jwk: P384_KEY.publicJwk };
  const { sub, ...rest } = CLAIMS;
  const spaced = JSON.stringify({ ...rest, sub }, null, 2).replace(BADGE_NUMBER, "100\\u0034711815");
  return [
    accept("the badge number and client signature that are expected", makeJwt(), {
      badgeNumber: BADGE_NUMBER,
      clientSignature: CLIENT_SIGNATURE,
    }),
    ...["1", "9007199254740991", "9007199254740990"].map((number) => {
      const claims = { ...CLAIMS, sub: number };
      return accept(`badge number ${number}`, makeJwt({ claims }), { claims, badgeNumber: number });
    }),
    accept("unknown claims are ignored", makeJwt({ claims: withExtra }), { claims: withExtra }),
    accept("unknown header parameters are ignored, jku and jwk too", makeJwt({ header: attackersHints }), IN_SET),
    accept("white space, other order and escapes in the JSON", makeJwt({ claims: spaced })),
  ];
}

function signatureVectors(): Vector[] {
  const input = `${part(HEADER)}.${part(CLAIMS)}`;
  const startingWith = (offset: number, test: (byte: number) => boolean) =>
    withSignature(
      input,
      signatureWith(input, (signature) => test(signature.readUInt8(offset))),
    );
  const signature = signatureWith(input, () => true);
  const s = BigInt(`0x${signature.subarray(32).toString("hex")}`);
  const otherS = Buffer.from((P256_ORDER - s).toString(16).padStart(64, "0"), "hex");
  return [
    accept(
      "r starts with a zero octet",
      startingWith(0, (byte) => byte === 0),
    ),
    accept(
      "s starts with a zero octet",
      startingWith(32, (byte) => byte === 0),
    ),
    accept(
      "the highest bit of r is set",
      startingWith(0, (byte) => byte >= 128),
    ),
    accept("a signature", withSignature(input, signature)),
    accept(
      "the same signature with n - s in place of s, which ECDSA allows",
      withSignature(input, Buffer.concat([signature.subarray(0, 32), otherS])),
    ),
  ];
}
