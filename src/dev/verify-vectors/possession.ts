import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto";
import type { PossessionFailure } from "../../verify/index.ts";
import { OTHER_KEY, P384_KEY, SIGNING_KEY, STRANGERS_KEY } from "./keys.ts";
import {
  APPLICATION_ID,
  CLAIMS,
  claimsWithout,
  HEADER,
  ISSUED_AT,
  type Members,
  part,
  rawSignature,
} from "./tokens.ts";

/** One case of `vectors-possession.json`. Times are seconds. */
export interface PossessionVector {
  name: string;
  expected: "ok" | PossessionFailure;
  badgeSignature: string;
  response: string;
  challenge: string;
  doorId: string;
  publicKey: string;
  applicationId: string;
  nowSeconds: number;
  clockToleranceSeconds: number;
}

/** The phone's key; the signing key and the other key are the service's. */
export const PHONE_KEY = STRANGERS_KEY;
const { x, y } = PHONE_KEY.publicJwk;
const PHONE_JWK = { kty: "EC", crv: "P-256", x, y };

const DOOR_ID = "lobby-1";
const OTHER_APPLICATION_ID = "app_zyxwvtsrqpnmkjhgfedc";
const NOW = ISSUED_AT + 60;
const EXPIRES = NOW + 10;
const RANDOM = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const challengeWith = ({
  context = "badge-possession-v1",
  doorId = DOOR_ID,
  random = RANDOM,
  expires = EXPIRES,
} = {}) => `${context}.${doorId}.${random}.${expires}`;
const CHALLENGE = challengeWith();
const RESPONSE_HEADER = { alg: "ES256", typ: "door-response+jwt" };

/** @param published the JWTs of the last run: ECDSA signatures are random, so one that exists already is used again */
export function possessionVectors(published: readonly string[]): PossessionVector[] {
  const signed = [...published];
  function jwt(header: Members, claims: Members | string, { privateKey } = PHONE_KEY): string {
    const input = `${part(header)}.${part(claims)}`;
    const known = signed.find((each) => each.startsWith(`${input}.`) && isSignedBy(privateKey, each));
    if (known !== undefined) return known;
    const made = `${input}.${rawSignature(input, privateKey).toString("base64url")}`;
    signed.push(made);
    return made;
  }
  const badge = (claims: Members = {}, header: Members = {}) =>
    jwt({ ...HEADER, ...header }, { ...CLAIMS, cnf: { jwk: PHONE_JWK }, ...claims }, SIGNING_KEY);
  const bound = badge();
  const claimsFor = (badgeSignature: string) => ({
    role: "phone",
    challenge: CHALLENGE,
    application_id: APPLICATION_ID,
    badge_signature_hash: createHash("sha256").update(badgeSignature).digest("base64url"),
  });
  const claims = claimsFor(bound);
  const respond = (changes: Members = {}, header: Members = {}, key = PHONE_KEY) =>
    jwt({ ...RESPONSE_HEADER, ...header }, { ...claims, ...changes }, key);
  const response = respond();

  function vector(
    expected: PossessionVector["expected"],
    name: string,
    changes: Partial<PossessionVector> = {},
  ): PossessionVector {
    const { badgeSignature = bound } = changes;
    const presented = { badgeSignature, response: jwt(RESPONSE_HEADER, claimsFor(badgeSignature)) };
    const circumstances = { publicKey: SIGNING_KEY.spki, applicationId: APPLICATION_ID, nowSeconds: NOW };
    return {
      name,
      expected,
      ...presented,
      challenge: CHALLENGE,
      doorId: DOOR_ID,
      ...circumstances,
      clockToleranceSeconds: 60,
      ...changes,
    };
  }

  const forChallenge = (challenge: string) => ({ challenge, response: respond({ challenge }) });
  const longest = "A".repeat(64);
  const proofClaims = { jti: "1", htm: "POST", htu: "https://badges.example.com/v1/badge/sign", iat: NOW };

  const accepted = [
    vector("ok", "a bound badge and its phone"),
    vector("ok", "one second before the challenge expires", { nowSeconds: EXPIRES - 1 }),
    vector("ok", "a challenge that lives for a minute", forChallenge(challengeWith({ expires: NOW + 60 }))),
    vector("ok", "the longest door ID", {
      ...forChallenge(challengeWith({ doorId: longest })),
      doorId: longest,
    }),
    vector("ok", "unknown claims and header parameters are ignored", {
      response: respond({ iat: 1, exp: 2 }, { kid: "x", jwk: OTHER_KEY.publicJwk }),
    }),
    vector("ok", "members of cnf and of its key that are not required are ignored", {
      badgeSignature: badge({ cnf: { jwk: { ...PHONE_KEY.publicJwk, ext: true }, kid: "x" } }),
    }),
    vector("ok", "white space and other order in the response", {
      response: jwt(RESPONSE_HEADER, JSON.stringify(Object.fromEntries(Object.entries(claims).reverse()), null, 2)),
    }),
  ];

  const badgeRefused = [
    vector("bad-signature", "a badge signature by a stranger, who put in the own key", {
      badgeSignature: jwt(HEADER, { ...CLAIMS, cnf: { jwk: PHONE_JWK } }, PHONE_KEY),
    }),
    vector("wrong-audience", "a badge signature for another application", {
      badgeSignature: badge({ aud: OTHER_APPLICATION_ID }),
    }),
    vector("expired", "an expired badge signature", { nowSeconds: ISSUED_AT + 400 }),
    vector("wrong-type", "a response in place of the badge signature", { badgeSignature: response }),
    vector("not-bound", "a badge signature without cnf", { badgeSignature: jwt(HEADER, CLAIMS, SIGNING_KEY) }),
    ...[
      null,
      {},
      "key",
      [PHONE_JWK],
      { kid: "x" },
      { jwk: null },
      { jwk: [PHONE_JWK] },
      { jwk: P384_KEY.publicJwk },
      { jwk: { ...PHONE_JWK, crv: "P-384" } },
      { jwk: { ...PHONE_JWK, kty: "OKP" } },
      { jwk: { ...PHONE_JWK, x: 7 } },
      { jwk: { ...PHONE_JWK, y: undefined } },
      { jwk: { ...PHONE_JWK, x: `${x}=` } },
      { jwk: { ...PHONE_JWK, x: `AA${x}` } },
      { jwk: { ...PHONE_JWK, y: x } },
    ].map((cnf) => vector("malformed", `cnf is ${JSON.stringify(cnf)}`, { badgeSignature: badge({ cnf }) })),
    vector("malformed", "a key that is not on the curve, and no response", {
      badgeSignature: badge({ cnf: { jwk: { ...PHONE_JWK, y: x } } }),
      response: "",
    }),
  ];

  const [header = "", payload = "", signature = ""] = response.split(".");
  const responseRefused = [
    ...["", "x", `${header}.${payload}`, `${response}.`, `${response}==`, ` ${response}`, `${response}\n`].map((text) =>
      vector("malformed-response", `the response is ${JSON.stringify(text.slice(-12))} of ${text.length} characters`, {
        response: text,
      }),
    ),
    vector("malformed-response", "crit", { response: respond({}, { crit: ["exp"], exp: 1 }) }),
    vector("malformed-response", "claims that are a list", {
      response: jwt(RESPONSE_HEADER, JSON.stringify([claims])),
    }),
    vector("malformed-response", "claims that are not JSON", { response: jwt(RESPONSE_HEADER, "phone") }),
    ...["none", "HS256", "ES384", "es256", undefined].map((alg) =>
      vector("wrong-response-algorithm", `alg is ${alg}`, { response: respond({}, { alg }) }),
    ),
    vector("wrong-response-type", "the badge signature once more", { response: bound }),
    vector("wrong-response-type", "a proof for the service", {
      response: jwt({ alg: "ES256", typ: "dpop+jwt", jwk: PHONE_JWK }, { ...proofClaims, ...claims }),
    }),
    ...["JWT", "application/door-response+jwt", "DOOR-RESPONSE+JWT", undefined].map((typ) =>
      vector("wrong-response-type", `typ is ${typ}`, { response: respond({}, { typ }) }),
    ),
    vector("bad-response-signature", "by a stranger's key", { response: respond({}, {}, OTHER_KEY) }),
    vector("bad-response-signature", "by a stranger's key, which the header contains", {
      response: respond({}, { jwk: OTHER_KEY.publicJwk }, OTHER_KEY),
    }),
    vector("bad-response-signature", "by the service's key", { response: respond({}, {}, SIGNING_KEY) }),
    vector("bad-response-signature", "no signature", { response: `${header}.${payload}.` }),
    vector("bad-response-signature", "a signature of zeros", { response: `${header}.${payload}.${"A".repeat(86)}` }),
    vector("bad-response-signature", "of other claims", {
      response: `${header}.${part({ ...claims, role: "door" })}.${signature}`,
    }),
    ...["door", "", null, undefined, ["phone"]].map((role) =>
      vector("wrong-role", `role is ${JSON.stringify(role)}`, { response: respond({ role }) }),
    ),
  ];

  const otherRandom = challengeWith({ random: `B${RANDOM.slice(1)}` });
  const challengeRefused = [
    vector("wrong-challenge", "a response to an earlier challenge", { response: respond({ challenge: otherRandom }) }),
    vector("wrong-challenge", "a response to another door's challenge", {
      response: respond({ challenge: challengeWith({ doorId: "lobby-2" }) }),
    }),
    vector("wrong-challenge", "a challenge that is another door's", forChallenge(challengeWith({ doorId: "lobby-2" }))),
    vector("wrong-challenge", "a challenge with a later expiry than was sent", {
      response: respond({ challenge: challengeWith({ expires: EXPIRES + 1 }) }),
    }),
    ...[null, undefined, 7, [CHALLENGE], ""].map((challenge) =>
      vector("wrong-challenge", `the response's challenge is ${JSON.stringify(challenge)}`, {
        response: respond({ challenge }),
      }),
    ),
    ...[
      challengeWith({ context: "badge-possession-v2" }),
      challengeWith({ random: RANDOM.slice(1) }),
      `${CHALLENGE}0000000000`,
      `${CHALLENGE}\n`,
      `${CHALLENGE}.1`,
      "",
    ].map((challenge) =>
      vector("wrong-challenge", `a challenge of another form: ${JSON.stringify(challenge)}`, forChallenge(challenge)),
    ),
    vector("expired-challenge", "in the second in which the challenge expires", { nowSeconds: EXPIRES }),
    vector("expired-challenge", "a challenge that lives too long", forChallenge(challengeWith({ expires: NOW + 61 }))),
    vector("wrong-application", "a response for another application", {
      response: respond({ application_id: OTHER_APPLICATION_ID }),
    }),
    vector("wrong-application", "a response for no application", { response: respond({ application_id: undefined }) }),
    vector("wrong-badge-signature", "a response made with another badge signature", {
      badgeSignature: badge({ iat: ISSUED_AT + 1 }),
      response,
    }),
    vector("wrong-badge-signature", "the hash in hexadecimal", {
      response: respond({ badge_signature_hash: createHash("sha256").update(bound).digest("hex") }),
    }),
    vector("wrong-badge-signature", "no hash", { response: respond({ badge_signature_hash: undefined }) }),
    vector("wrong-badge-signature", "the hash of the claims alone", {
      response: respond({
        badge_signature_hash: createHash("sha256").update(JSON.stringify(claimsWithout())).digest("base64url"),
      }),
    }),
  ];
  return [...accepted, ...badgeRefused, ...responseRefused, ...challengeRefused];
}

function isSignedBy(key: KeyObject, jwt: string): boolean {
  const end = jwt.lastIndexOf(".");
  const verifier = { key: createPublicKey(key), dsaEncoding: "ieee-p1363" } as const;
  return verify("sha256", Buffer.from(jwt.slice(0, end)), verifier, Buffer.from(jwt.slice(end + 1), "base64url"));
}
