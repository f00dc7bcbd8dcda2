import { createLocalJWKSet, type JWK } from "jose";
import { describe, expect, it } from "vitest";
import { verifyToken } from "../../src/worker/users/verify-token.ts";
import { ALGORITHMS, AUDIENCE, newProviderKey, Provider, type TokenOptions } from "./provider.ts";

const provider = new Provider(await newProviderKey("ES256"));
const RULES = { issuer: provider.issuer, audience: AUDIENCE };
const SECONDS = Math.floor(Date.now() / 1000);

/** The header of a token, as it is sent. */
const part = (value: object) => btoa(JSON.stringify(value)).replaceAll("=", "");

/** The user that a token names, or why it was refused. */
async function verify(token: string, keys: JWK[] = [provider.key.jwk], claim = "sub") {
  const outcome = await verifyToken(token, createLocalJWKSet({ keys }), { ...RULES, claim }, SECONDS * 1000);
  return outcome.ok ? outcome.userId : outcome.reason;
}

const verifyWith = async (claims: Record<string, unknown>, options?: TokenOptions) =>
  verify(await provider.token("alice", claims, options));

describe("the signature of a user token (contract section 22)", () => {
  it.each(ALGORITHMS)("a user token's signature is checked with %s", async (algorithm) => {
    const [key, other] = await Promise.all([newProviderKey(algorithm), newProviderKey(algorithm)]);
    const token = await provider.token("alice", {}, { key });
    expect(await verify(token, [key.jwk])).toBe("alice");
    const withoutAlg = { ...key.jwk };
    delete withoutAlg.alg;
    expect(await verify(token, [withoutAlg])).toBe("alice");
    expect(await verify(token, [{ ...other.jwk, kid: key.jwk.kid ?? "" }])).toBe("token-signature");
    expect(await verify(token, [other.jwk])).toBe("unknown-key");
    const [header, payload, signature = ""] = token.split(".");
    const flipped = signature.startsWith("A") ? `B${signature.slice(1)}` : `A${signature.slice(1)}`;
    expect(await verify(`${header}.${payload}.${flipped}`, [key.jwk])).toBe("token-signature");
  });

  it.each(["ES512", "RS384", "PS512", "Ed25519"])("a user token signed with %s is refused", async (algorithm) => {
    const key = await newProviderKey(algorithm);
    const token = await provider.token("alice", {}, { key });
    expect(await verify(token, [{ ...key.jwk, alg: "" }, key.jwk])).toBe("token-algorithm");
  });

  it("a user token without a signature, or with an HMAC under the public key, is not one that anybody can make", async () => {
    const payload = (await provider.token("alice")).split(".")[1];
    expect(await verify(`${part({ alg: "none" })}.${payload}.`)).toBe("token-algorithm");
    expect(await verify(`${part({ alg: "HS256", kid: provider.key.jwk.kid })}.${payload}.AAAA`)).toBe(
      "token-algorithm",
    );
  });

  it("a user token that names no key may be signed by any key of the issuer", async () => {
    const [one, other] = await Promise.all([newProviderKey("ES256"), newProviderKey("ES256")]);
    const token = await provider.token("alice", {}, { key: other, header: { kid: undefined } });
    expect(await verify(token, [one.jwk, other.jwk, provider.key.jwk])).toBe("alice");
    expect(await verify(token, [one.jwk, provider.key.jwk])).toBe("unknown-key");
  });

  it("a user token signed by an invalid key is refused", async () => {
    const jwk = { ...provider.key.jwk, x: "AAAA" };
    expect(await verify(await provider.token("alice"), [jwk])).toBe("unusable-key");
  });
});

describe("the form of a user token (contract section 22)", () => {
  it("a user token is a JWT of at most 16,384 characters", async () => {
    for (const text of ["", "..", "a.b.c", "a.b.c.d.e", "{}"]) expect(await verify(text)).toBe("malformed-token");
    expect(await verify("x".repeat(16_384))).toBe("malformed-token");
    expect(await verify("x".repeat(16_385))).toBe("oversized-token");
  });

  it("a user token may have no type, JWT or at+jwt, and none of another JWT", async () => {
    for (const typ of [undefined, "jwt", "application/at+jwt"]) {
      expect(await verifyWith({}, { header: { typ } })).toBe("alice");
    }
    for (const typ of ["logout+jwt", "badge-signature+jwt", ""]) {
      expect(await verifyWith({}, { header: { typ } })).toBe("token-type");
    }
  });

  it("a user token with a critical extension is refused", async () => {
    const [, payload, signature] = (await provider.token("alice")).split(".");
    const header = { alg: "ES256", kid: provider.key.jwk.kid, crit: ["exp"], exp: 1 };
    expect(await verify(`${part(header)}.${payload}.${signature}`)).toBe("malformed-token");
  });
});

describe("the claims of a user token (contract section 22)", () => {
  it.each<[string, Record<string, unknown>]>([
    ["other-issuer", { iss: `${provider.issuer}/` }],
    ["token-claims", { iss: undefined }],
    ["other-audience", { aud: "another-app" }],
    ["other-audience", { aud: ["another-app"] }],
    ["token-claims", { aud: undefined }],
    ["alice", { aud: ["another-app", AUDIENCE] }],
    ["token-claims", { exp: undefined }],
    ["token-claims", { exp: "2030-01-01" }],
    ["alice", { iat: undefined }],
    ["no-user-claim", { sub: undefined }],
    ["no-user-claim", { sub: "" }],
    ["no-user-claim", { sub: 17 }],
    ["token-claims", { cnf: { "x5t#S256": "abc" } }],
  ])("%s: %j", async (expected, claims) => {
    expect(await verifyWith(claims)).toBe(expected);
  });

  it.each<[string, number]>([
    ["exp", -59],
    ["nbf", 60],
    ["iat", 60],
  ])("the claims of a user token have 60 s of leeway for %s", async (claim, edge) => {
    const failure = claim === "exp" ? "expired-token" : "early-token";
    const beyond = claim === "exp" ? edge - 1 : edge + 1;
    expect(await verifyWith({ [claim]: SECONDS + edge })).toBe("alice");
    expect(await verifyWith({ [claim]: SECONDS + beyond })).toBe(failure);
    expect(await verifyWith({ [claim]: SECONDS + beyond * 1000 })).toBe(failure);
  });

  it("the user is in the claim that the application names", async () => {
    const token = await provider.token("0815", { "https://example.com/user": "a-1" });
    expect(await verify(token, undefined, "https://example.com/user")).toBe("a-1");
    expect(await verify(token, undefined, "__proto__")).toBe("no-user-claim");
  });
});
