import { createECDH, createHash, createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";

/** A JWK with string members only, public or private. */
export type Jwk = Record<string, string>;

/** A signing key of the vectors, in every format they need. */
export interface TestKey {
  kid: string;
  /** As the service publishes it. */
  publicJwk: Jwk;
  privateJwk: Jwk;
  /** Base64 of the SPKI DER. */
  spki: string;
  privateKey: KeyObject;
}

/** A key as the vector files publish it. */
export const describeKey = (key: TestKey): object => ({
  publicJwk: key.publicJwk,
  spki: key.spki,
  privateJwkForTestsOnly: key.privateJwk,
});

const CURVES = { "P-256": { openssl: "prime256v1", bytes: 32 }, "P-384": { openssl: "secp384r1", bytes: 48 } } as const;

// The private keys are examples printed in RFCs, so nobody can mistake them for secrets.

/** RFC 7515 appendix A.3. */
export const SIGNING_KEY = testKey("P-256", base64Url("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"));
/** RFC 7517 appendix A.2: the application's other key. */
export const OTHER_KEY = testKey("P-256", base64Url("870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE"));
/** RFC 6979 appendix A.2.5: a key that is in no key set. */
export const STRANGERS_KEY = testKey(
  "P-256",
  Buffer.from("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721", "hex"),
);
/** RFC 6979 appendix A.2.6. */
export const P384_KEY = testKey(
  "P-384",
  Buffer.from(
    "6B9D3DAD2E1B8C1C05B19875B6659F4DE23C3B667BF297BA9AA47740787137D896D5724E4C70A825F872C9EA60D2EDF5",
    "hex",
  ),
);

/** The order of the P-256 group (FIPS 186-5, SP 800-186 section 3.2.1.3). */
export const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

function testKey(curve: keyof typeof CURVES, scalar: Buffer): TestKey {
  const { openssl, bytes } = CURVES[curve];
  const ecdh = createECDH(openssl);
  ecdh.setPrivateKey(scalar);
  const point = ecdh.getPublicKey();
  const x = point.subarray(1, 1 + bytes).toString("base64url");
  const y = point.subarray(1 + bytes).toString("base64url");
  // RFC 7638 section 3.2: the required members in this order.
  const kid = createHash("sha256")
    .update(JSON.stringify({ crv: curve, kty: "EC", x, y }))
    .digest("base64url");
  const publicJwk = { kty: "EC", crv: curve, x, y, kid, use: "sig", alg: curve === "P-256" ? "ES256" : "ES384" };
  const privateJwk = { ...publicJwk, d: scalar.toString("base64url") };
  const privateKey = createPrivateKey({ key: privateJwk, format: "jwk" });
  const spki = createPublicKey(privateKey).export({ type: "spki", format: "der" }).toString("base64");
  return { kid, publicJwk, privateJwk, spki, privateKey };
}

function base64Url(text: string): Buffer {
  return Buffer.from(text, "base64url");
}
