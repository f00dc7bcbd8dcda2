import { base64url } from "jose";
import { describe, expect, it } from "vitest";
import { type PROOF_FAILURE_CODES, verifyDpopProof } from "../../src/worker/dpop/verify-proof.ts";
import {
  CALL,
  CLAIMS,
  HEADER,
  KEY,
  type Members,
  makeProof,
  newKey,
  OTHER_KEY,
  outcomeOf,
  part,
  signParts,
} from "./support.ts";

const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

type Reason = keyof typeof PROOF_FAILURE_CODES;

/** Every reason of a refusal and, by name, the proofs that are refused for it. */
const REFUSALS: Record<Reason, Record<string, () => Promise<string>>> = {
  oversized: {
    "a header of 4,097 characters": async () => sized(4097),
    "a header of a million characters": async () => "A".repeat(1_000_000),
    "a nonce of 4,000 characters": () => makeProof({ claims: { nonce: "n".repeat(4000) } }),
  },
  "several-headers": {
    "two proofs": async () => `${await makeProof()}, ${await makeProof()}`,
    "one proof and an empty header": async () => `${await makeProof()}, `,
    "a comma without a space": async () => `${await makeProof()},x`,
  },
  "malformed-jws": {
    "an empty text": async () => "",
    "a word": async () => "proof",
    "an authorization scheme before it": async () => `DPoP ${await makeProof()}`,
    "no signature": async () => (await makeProof()).replace(/[^.]*$/, "").slice(0, -1),
    "a fourth part": async () => `${await makeProof()}.x`,
    "a dot at the end": async () => `${await makeProof()}.`,
    "a dot at the start": async () => `.${await makeProof()}`,
    "five parts, as an encrypted JWT has": async () => `${await makeProof()}..`,
    "the JSON serialization": async () => '{"payload":""}',
    "white space around it": async () => ` ${await makeProof()}`,
    "a line feed after it": async () => `${await makeProof()}\n`,
    "padding in the header": () => signParts(`${part(padded(HEADER))}==`, part(CLAIMS)),
    "padding in the payload": () => signParts(part(HEADER), `${part(padded(CLAIMS))}==`),
    "padding after the signature": async () => `${await makeProof()}==`,
    "stray bits in the header": () => signParts(withStrayBit(part(padded(HEADER))), part(CLAIMS)),
    "stray bits in the payload": () => signParts(part(HEADER), withStrayBit(part(padded(CLAIMS)))),
    "stray bits in the signature": async () => withStrayBit(await makeProof()),
    "base64 where base64url belongs": async () => (await proofWith(/[-_].*$/)).replace(/-/g, "+").replace(/_/g, "/"),
    "white space within the payload": () => signParts(part(HEADER), part(CLAIMS).replace(/^.{8}/, "$& ")),
    "letters outside ASCII": async () => `${(await makeProof()).slice(0, -1)}\uff21`,
  },
  "malformed-header": {
    "not JSON": () => signParts(part("dpop+jwt"), part(CLAIMS)),
    "an empty header": () => signParts("", part(CLAIMS)),
    null: () => signParts(part("null"), part(CLAIMS)),
    "an array": () => signParts(part(JSON.stringify([HEADER])), part(CLAIMS)),
    "a byte order mark": () => signParts(part(`\ufeff${JSON.stringify(HEADER)}`), part(CLAIMS)),
    "invalid UTF-8": () => signParts(part(invalidUtf8(HEADER)), part(CLAIMS)),
  },
  "critical-extension": {
    "crit that names a claim": () => makeProof({ header: { crit: ["exp"], exp: 1 } }),
    "an empty crit": () => makeProof({ header: { crit: [] } }),
    "crit that is null": () => makeProof({ header: { crit: null } }),
    "an unencoded payload": () => makeProof({ header: { crit: ["b64"], b64: false } }),
    "b64 without crit": () => makeProof({ header: { b64: true } }),
  },
  "wrong-type": {
    "no typ": () => makeProof({ header: { typ: undefined } }),
    "any JWT's typ": () => makeProof({ header: { typ: "JWT" } }),
    "a badge signature's typ": () => makeProof({ header: { typ: "badge-signature+jwt" } }),
    "a door response's typ": () => makeProof({ header: { typ: "door-response+jwt" } }),
    "another spelling": () => makeProof({ header: { typ: "application/dpop+jwt" } }),
    "upper case": () => makeProof({ header: { typ: "DPOP+JWT" } }),
    "a list": () => makeProof({ header: { typ: ["dpop+jwt"] } }),
  },
  "wrong-algorithm": {
    "no alg": () => makeProof({ header: { alg: undefined } }),
    none: async () => `${part({ ...HEADER, alg: "none" })}.${part(CLAIMS)}.`,
    "an HMAC": () => makeProof({ header: { alg: "HS256" } }),
    "upper and lower case": () => makeProof({ header: { alg: "es256" } }),
    "another curve": () => makeProof({ header: { alg: "ES384" } }),
    "a curve that looks alike": () => makeProof({ header: { alg: "ES256K" } }),
    RSA: () => makeProof({ header: { alg: "RS256" } }),
  },
  "private-key": Object.fromEntries(
    ["d", "p", "q", "dp", "dq", "qi", "oth", "k"].map((name) => [
      `the private member ${name}`,
      () => makeProof({ header: { jwk: { ...KEY.jwk, [name]: null } } }),
    ]),
  ),
  "wrong-key": {
    "no jwk": () => makeProof({ header: { jwk: undefined } }),
    "jwk as text": () => makeProof({ header: { jwk: JSON.stringify(KEY.jwk) } }),
    "jwk as a list": () => makeProof({ header: { jwk: [KEY.jwk] } }),
    "a kid instead": () => makeProof({ header: { jwk: undefined, kid: "mine" } }),
    "another curve": keyWith({ crv: "P-384" }),
    "a curve that looks alike": keyWith({ crv: "secp256k1" }),
    "another kind of key": keyWith({ kty: "OKP" }),
    "a symmetric key": keyWith({ kty: "oct" }),
    "no x": keyWith({ x: undefined }),
    "no y": keyWith({ y: undefined }),
    "x as a number": keyWith({ x: 7 }),
    "a short x": keyWith({ x: KEY.jwk.x.slice(1) }),
    "x with a zero byte before it": keyWith({ x: zeroExtended(KEY.jwk.x) }),
    "x with padding": keyWith({ x: `${KEY.jwk.x}=` }),
    "x with stray bits": keyWith({ x: withStrayBit(KEY.jwk.x) }),
    "y with a line feed": keyWith({ y: `${KEY.jwk.y}\n` }),
    "a point off the curve": keyWith({ y: KEY.jwk.x }),
    "the point at infinity": keyWith({ x: "A".repeat(43), y: "A".repeat(43) }),
    "a coordinate beyond the field": keyWith({ x: `${"_".repeat(42)}8` }),
    "a key for encryption": keyWith({ use: "enc" }),
    "a key that may not verify": keyWith({ key_ops: ["sign"] }),
    "a key for another algorithm": keyWith({ alg: "ECDH-ES" }),
  },
  "malformed-claims": {
    "not JSON": () => signParts(part(HEADER), part("proof")),
    "an empty payload": () => signParts(part(HEADER), ""),
    "an array": () => signParts(part(HEADER), part(JSON.stringify([CLAIMS]))),
    "a byte order mark": () => signParts(part(HEADER), part(`\ufeff${JSON.stringify(CLAIMS)}`)),
    "invalid UTF-8": () => signParts(part(HEADER), part(invalidUtf8(CLAIMS))),
    "an infinite iat": () => signParts(part(HEADER), part(JSON.stringify(CLAIMS).replace(/"iat":\d+/, '"iat":1e999'))),
    "a jti of 257 characters": claimsWith({ jti: "j".repeat(257) }),
    ...wrongClaims({ jti: ["", 7, null], htm: [7, null], htu: [7, null, ["https://x/"]], iat: ["1800000000", null] }),
    ...wrongClaims({ aud: [7, null, [CLAIMS.aud]], ath: [7, null], body_hash: [7, null], nonce: [7, null, ["n"]] }),
  },
  "wrong-signature": {
    "by another key": () => makeProof({ key: OTHER_KEY }),
    "an empty signature": async () => (await makeProof()).replace(/[^.]*$/, ""),
    "63 bytes": async () => withSignature(await makeProof(), (bytes) => bytes.subarray(1)),
    "65 bytes": async () => withSignature(await makeProof(), (bytes) => Uint8Array.of(0, ...bytes)),
    zeros: async () => withSignature(await makeProof(), (bytes) => new Uint8Array(bytes.length)),
    "s before r": async () =>
      withSignature(await makeProof(), (bytes) => Uint8Array.of(...bytes.subarray(32), ...bytes.subarray(0, 32))),
    "of other claims": async () => {
      const [header, , signature] = (await makeProof()).split(".");
      return `${header}.${part({ ...CLAIMS, jti: "another" })}.${signature}`;
    },
    "of another header": async () => {
      const [, payload, signature] = (await makeProof()).split(".");
      return `${part({ ...HEADER, kid: "x" })}.${payload}.${signature}`;
    },
    "with the attacker's key put in place of the owner's": async () => {
      const [, payload, signature] = (await makeProof()).split(".");
      return `${part({ ...HEADER, jwk: (await newKey()).jwk })}.${payload}.${signature}`;
    },
  },
  "wrong-method": {
    GET: claimsWith({ htm: "GET" }),
    "lower case": claimsWith({ htm: "post" }),
    empty: claimsWith({ htm: "" }),
  },
  "wrong-url": {
    "the other device call": claimsWith({ htu: `${CLAIMS.htu}/sign` }),
    "another service": claimsWith({ htu: "https://badges.example.org/v1/badge" }),
    "a path alone": claimsWith({ htu: "/v1/badge" }),
  },
  "wrong-audience": {
    "another application": claimsWith({ aud: "app_zyxwvtsrqpnmkjhgfedc" }),
    "another case": claimsWith({ aud: CLAIMS.aud.toUpperCase() }),
    empty: claimsWith({ aud: "" }),
  },
  "wrong-udid": {
    "the hash of nothing": claimsWith({ ath: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU" }),
    empty: claimsWith({ ath: "" }),
  },
  "wrong-body": {
    "the hash of nothing": claimsWith({ body_hash: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU" }),
    padding: claimsWith({ body_hash: `${CLAIMS.body_hash}=` }),
  },
  "stale-nonce": {
    empty: claimsWith({ nonce: "" }),
    "made up": claimsWith({ nonce: `${CLAIMS.iat}.${"A".repeat(22)}` }),
  },
  "stale-iat": {
    "a day old": claimsWith({ iat: CLAIMS.iat - 86_400 }),
    "a day ahead": claimsWith({ iat: CLAIMS.iat + 86_400 }),
    "in milliseconds": claimsWith({ iat: CLAIMS.iat * 1000 }),
    negative: claimsWith({ iat: -1 }),
  },
};

const TABLE = Object.entries(REFUSALS).flatMap(([reason, proofs]) => {
  const code = reason.startsWith("stale-") ? "USE_DPOP_NONCE" : "INVALID_PROOF";
  return Object.entries(proofs).map(([name, make]) => ({ reason, code, name, make }));
});

describe("a proof is refused (contract section 15)", () => {
  it("a proof is not refused if nothing is wrong with it", async () => {
    expect(await outcomeOf(await makeProof())).toBe("accepted");
    expect(await outcomeOf(await sized(4096))).toBe("accepted");
    expect(await outcomeOf(await makeProof({ claims: { jti: "j".repeat(256) } }))).toBe("accepted");
  });

  it.each(TABLE)("$code, $reason: $name", async ({ reason, code, make }) => {
    // Only a proof that is merely not fresh names its key, by which calls are limited.
    const thumbprint = code === "USE_DPOP_NONCE" ? expect.stringMatching(/^[\w-]{43}$/) : null;
    expect(await verifyDpopProof(await make(), CALL)).toEqual({ ok: false, reason, code, thumbprint });
  });

  it("a proof is refused as stale only if nothing else is wrong: USE_DPOP_NONCE means that a nonce is all that is missing", async () => {
    const stale = { iat: CLAIMS.iat - 86_400 };
    for (const wrong of [{ htm: "GET" }, { htu: "https://x/" }, { aud: "" }, { ath: "" }, { body_hash: "" }]) {
      expect(await outcomeOf(await makeProof({ claims: { ...stale, ...wrong } }))).toMatch(/^INVALID_PROOF/);
    }
    expect(await outcomeOf(await makeProof({ claims: stale, key: OTHER_KEY }))).toMatch(/^INVALID_PROOF/);
  });

  it("a proof with any one character changed is refused", async () => {
    const proof = await makeProof();
    for (let index = 0; index < proof.length; index++) {
      const changed = proof.slice(0, index) + (proof[index] === "B" ? "C" : "B") + proof.slice(index + 1);
      expect(await outcomeOf(changed)).toMatch(/^INVALID_PROOF/);
    }
  });
});

function keyWith(changes: Members): () => Promise<string> {
  return () => makeProof({ header: { jwk: { ...KEY.jwk, ...changes } } });
}

function claimsWith(claims: Members): () => Promise<string> {
  return () => makeProof({ claims });
}

function wrongClaims(values: Record<string, readonly unknown[]>): Record<string, () => Promise<string>> {
  const cases = Object.entries(values).flatMap(([name, wrong]) =>
    wrong.map((value) => [`${name} is ${JSON.stringify(value)}`, claimsWith({ [name]: value })] as const),
  );
  return Object.fromEntries(cases);
}

/** A good proof whose text has this many characters. */
async function sized(characters: number): Promise<string> {
  const dotsAndSignature = 2 + 86;
  // No base64url text has 4n + 1 characters, so the header has to be of more than one length.
  for (const kid of ["", "x", "xx"]) {
    const header = part({ ...HEADER, kid });
    for (let filler = 0; filler < characters; filler++) {
      const payload = part({ ...CLAIMS, filler: "x".repeat(filler) });
      if (header.length + payload.length + dotsAndSignature === characters) return signParts(header, payload);
    }
  }
  throw new Error("no such proof");
}

/** A good proof whose text matches: ECDSA signatures are random. */
async function proofWith(pattern: RegExp): Promise<string> {
  for (;;) {
    const proof = await makeProof();
    if (pattern.test(proof)) return proof;
  }
}

/** JSON with as much trailing white space as it takes to leave four unused bits in the last character of its base64url. */
function padded(value: object): string {
  let json = JSON.stringify(value);
  while (json.length % 3 !== 1) json += " ";
  return json;
}

/** Sets an unused bit of the last character: a lenient decoder reads the same bytes (RFC 4648 section 3.5). */
function withStrayBit(text: string): string {
  return text.slice(0, -1) + BASE64URL.charAt(BASE64URL.indexOf(text.slice(-1)) | 1);
}

function invalidUtf8(value: object): Uint8Array {
  const json = new TextEncoder().encode(`${JSON.stringify(value).slice(0, -1)},"x":"?"}`);
  return json.map((byte) => (byte === "?".charCodeAt(0) ? 0xff : byte));
}

function zeroExtended(coordinate: string): string {
  return base64url.encode(Uint8Array.of(0, ...base64url.decode(coordinate)));
}

function withSignature(proof: string, change: (signature: Uint8Array) => Uint8Array): string {
  const [header, payload, signature = ""] = proof.split(".");
  return `${header}.${payload}.${base64url.encode(change(base64url.decode(signature)))}`;
}
