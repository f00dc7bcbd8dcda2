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

const latin1 = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0));

/** Every reason of a refusal and, by name, the proofs that are refused for it. */
const REFUSALS: Record<Reason, Record<string, () => Promise<string>>> = {
  oversized: {
    "4,097 characters": async () => "A".repeat(4097),
  },
  "several-headers": {
    "two proofs": async () => `${await makeProof()}, ${await makeProof()}`,
    "a comma without a space": async () => `${await makeProof()},x`,
  },
  "malformed-jws": {
    "an empty text": async () => "",
    "an authorization scheme before it": async () => `DPoP ${await makeProof()}`,
    "no signature": async () => (await makeProof()).replace(/[^.]*$/, "").slice(0, -1),
    "a fourth part": async () => `${await makeProof()}.x`,
    "a line feed after it": async () => `${await makeProof()}\n`,
    "padding in the payload": () => signParts(part(HEADER), `${part(CLAIMS)}=`),
    "padding after the signature": async () => `${await makeProof()}==`,
    "stray bits in the signature": async () => withStrayBit(await makeProof()),
    "letters outside ASCII": async () => `${(await makeProof()).slice(0, -1)}\uff21`,
  },
  "malformed-header": {
    "not JSON": () => signParts(part("dpop+jwt"), part(CLAIMS)),
    "an array": () => signParts(part(JSON.stringify([HEADER])), part(CLAIMS)),
  },
  "critical-extension": {
    "crit that names a claim": () => makeProof({ header: { crit: ["exp"], exp: 1 } }),
    "crit that is null": () => makeProof({ header: { crit: null } }),
    "b64 without crit": () => makeProof({ header: { b64: true } }),
  },
  "wrong-type": {
    "no typ": () => makeProof({ header: { typ: undefined } }),
    "a door response's typ": () => makeProof({ header: { typ: "door-response+jwt" } }),
    "upper case": () => makeProof({ header: { typ: "DPOP+JWT" } }),
  },
  "wrong-algorithm": {
    "no alg": () => makeProof({ header: { alg: undefined } }),
    none: async () => `${part({ ...HEADER, alg: "none" })}.${part(CLAIMS)}.`,
    "an HMAC": () => makeProof({ header: { alg: "HS256" } }),
    "another curve": () => makeProof({ header: { alg: "ES384" } }),
  },
  "private-key": Object.fromEntries(
    ["d", "p", "q", "dp", "dq", "qi", "oth", "k"].map((name) => [
      `the private member ${name}`,
      () => makeProof({ header: { jwk: { ...KEY.jwk, [name]: null } } }),
    ]),
  ),
  "wrong-key": {
    "a kid instead of jwk": () => makeProof({ header: { jwk: undefined, kid: "mine" } }),
    "another curve": keyWith({ crv: "P-384" }),
    "no y": keyWith({ y: undefined }),
    "a short x": keyWith({ x: KEY.jwk.x.slice(1) }),
    "x with stray bits": keyWith({ x: withStrayBit(KEY.jwk.x) }),
    "y with a line feed": keyWith({ y: `${KEY.jwk.y}\n` }),
    "a point off the curve": keyWith({ y: KEY.jwk.x }),
    "a coordinate beyond the field": keyWith({ x: `${"_".repeat(42)}8` }),
    "a key for encryption": keyWith({ use: "enc" }),
    "a key that may not verify": keyWith({ key_ops: ["sign"] }),
    "a key for another algorithm": keyWith({ alg: "ECDH-ES" }),
  },
  "malformed-claims": {
    "not JSON": () => signParts(part(HEADER), part("proof")),
    "not UTF-8": () => signParts(part(HEADER), part(latin1(JSON.stringify({ ...CLAIMS, jti: "é" })))),
    "a byte order mark": () => signParts(part(HEADER), part(`\ufeff${JSON.stringify(CLAIMS)}`)),
    "an infinite iat": () => signParts(part(HEADER), part(JSON.stringify(CLAIMS).replace(/"iat":\d+/, '"iat":1e999'))),
    "a jti of 257 characters": claimsWith({ jti: "j".repeat(257) }),
    "an empty jti": claimsWith({ jti: "" }),
    "iat as text": claimsWith({ iat: "1800000000" }),
    ...Object.fromEntries(
      ["aud", "jti", "htm", "htu", "iat", "ath", "body_hash"].map((name) => [
        `no ${name}`,
        claimsWith({ [name]: undefined }),
      ]),
    ),
    ...Object.fromEntries(
      ["jti", "htm", "htu", "aud", "ath", "body_hash", "nonce"].map((name) => [
        `${name} as a list`,
        claimsWith({ [name]: ["x"] }),
      ]),
    ),
  },
  "wrong-signature": {
    "by another key": () => makeProof({ key: OTHER_KEY }),
    "an empty signature": async () => (await makeProof()).replace(/[^.]*$/, ""),
    "65 bytes": async () => withSignature(await makeProof(), (bytes) => Uint8Array.of(0, ...bytes)),
    zeros: async () => withSignature(await makeProof(), (bytes) => new Uint8Array(bytes.length)),
    "of other claims": async () => {
      const [header, , signature] = (await makeProof()).split(".");
      return `${header}.${part({ ...CLAIMS, jti: "another" })}.${signature}`;
    },
    "with the attacker's key put in place of the owner's": async () => {
      const [, payload, signature] = (await makeProof()).split(".");
      return `${part({ ...HEADER, jwk: (await newKey()).jwk })}.${payload}.${signature}`;
    },
  },
  "wrong-method": { "another method": claimsWith({ htm: "GET" }), "lower case": claimsWith({ htm: "post" }) },
  "wrong-url": { "another service": claimsWith({ htu: "https://badges.example.org/v1/badge" }) },
  "wrong-audience": { "another case": claimsWith({ aud: CLAIMS.aud.toUpperCase() }), empty: claimsWith({ aud: "" }) },
  "wrong-udid": { empty: claimsWith({ ath: "" }) },
  "wrong-body": { padding: claimsWith({ body_hash: `${CLAIMS.body_hash}=` }), empty: claimsWith({ body_hash: "" }) },
  "stale-nonce": {
    empty: claimsWith({ nonce: "" }),
    "made up": claimsWith({ nonce: `${CLAIMS.iat}.${"A".repeat(22)}` }),
  },
  "stale-iat": {
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
    expect(await outcomeOf("A".repeat(4096))).toBe("INVALID_PROOF malformed-jws");
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

/** Sets an unused bit of the last character: a lenient decoder reads the same bytes (RFC 4648 section 3.5). */
function withStrayBit(text: string): string {
  return text.slice(0, -1) + BASE64URL.charAt(BASE64URL.indexOf(text.slice(-1)) | 1);
}

function withSignature(proof: string, change: (signature: Uint8Array) => Uint8Array): string {
  const [header, payload, signature = ""] = proof.split(".");
  return `${header}.${payload}.${base64url.encode(change(base64url.decode(signature)))}`;
}
