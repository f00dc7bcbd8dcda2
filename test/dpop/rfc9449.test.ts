import * as dpop from "dpop";
import { calculateJwkThumbprint, exportJWK } from "jose";
import { describe, expect, it } from "vitest";
import { digestOf } from "../../src/shared/identifiers.ts";
import { makeNonce } from "../../src/worker/dpop/nonce.ts";
import { type ProvenCall, verifyDpopProof } from "../../src/worker/dpop/verify-proof.ts";
import {
  APPLICATION_ID,
  BODY,
  CALL,
  KEY,
  makeProof,
  NONCE_KEY,
  NOW_SECONDS,
  outcomeOf,
  UDID,
  URL_OF_CALL,
} from "./support.ts";

describe("a proof by an independent maker (contract section 15: dpop of npm)", () => {
  it("a proof by an independent maker is accepted, also with a nonce, with the thumbprint and the public members of its key", async () => {
    const pair = await dpop.generateKeyPair("ES256");
    // It takes `iat` from the clock.
    const call = { ...CALL, now: Date.now() };
    const more = { aud: APPLICATION_ID, body_hash: await digestOf(BODY) };
    for (const nonce of [undefined, await makeNonce(NONCE_KEY, call.now)]) {
      const proof = await dpop.generateProof(pair, URL_OF_CALL, "POST", nonce, UDID, more);
      expect(await verifyDpopProof(proof, call)).toEqual({
        ok: true,
        thumbprint: await dpop.calculateThumbprint(pair.publicKey),
        jwk: await exportJWK(pair.publicKey),
      });
    }
  });
});

const OTHER_BODY_HASH = await digestOf(`${BODY} `);

// Those that a proof fails by itself, and everything else that is refused: refusals.test.ts.
describe("the checks of RFC 9449 section 4.3 against the call, by their numbers", () => {
  it.each(["aud", "jti", "htm", "htu", "iat", "ath", "body_hash"])("3: it has the claim %s", async (name) => {
    expect(await outcomeOf(await makeProof({ claims: { [name]: undefined } }))).toBe("INVALID_PROOF malformed-claims");
  });

  it.each<[check: string, reason: string, call: Partial<ProvenCall>]>([
    ["8: htm is the method of the call", "wrong-method", { method: "GET" }],
    ["9: htu is the URL of the call", "wrong-url", { urls: [`${URL_OF_CALL}/sign`] }],
    ["12: ath is the hash of the call's udid", "wrong-udid", { udid: "phone-8" }],
    ["our own: aud is the application that is called", "wrong-audience", { applicationId: "app_zyxwvtsrqpnmkjhgfedc" }],
    ["our own: body_hash is the hash of the call's body", "wrong-body", { bodyHash: OTHER_BODY_HASH }],
  ])("%s", async (_, reason, call) => {
    expect(await outcomeOf(await makeProof())).toBe("accepted");
    expect(await outcomeOf(await makeProof(), call)).toBe(`INVALID_PROOF ${reason}`);
  });

  it("11: without a nonce, iat is at most 60 s from the service's clock; with one, a phone whose clock is a day wrong passes for 300 s", async () => {
    const at = async (seconds: number) => outcomeOf(await makeProof({ claims: { iat: NOW_SECONDS + seconds } }));
    for (const seconds of [-60, 60]) expect(await at(seconds)).toBe("accepted");
    for (const seconds of [-61, 61]) expect(await at(seconds)).toBe("USE_DPOP_NONCE stale-iat");
    const nonce = await makeNonce(NONCE_KEY, CALL.now);
    const proof = await makeProof({ claims: { iat: NOW_SECONDS - 86_400, nonce } });
    expect(await outcomeOf(proof, { now: CALL.now + 300_999 })).toBe("accepted");
    expect(await outcomeOf(proof, { now: CALL.now + 301_000 })).toBe("USE_DPOP_NONCE stale-nonce");
  });
});

describe("the thumbprint (RFC 7638)", () => {
  it("the thumbprint and the reported key depend on the required members alone", async () => {
    const jwk = { ext: true, key_ops: ["verify"], alg: "ES256", use: "sig", kid: "mine", ...KEY.jwk };
    const results = [
      await verifyDpopProof(await makeProof(), CALL),
      await verifyDpopProof(await makeProof({ header: { jwk } }), CALL),
    ];
    for (const result of results) {
      expect(result).toEqual({ ok: true, thumbprint: await calculateJwkThumbprint(KEY.jwk), jwk: KEY.jwk });
    }
    expect(JSON.stringify(results[1])).toContain(JSON.stringify(KEY.jwk));
  });
});

it("claims that the profile does not know are ignored, also times of the device's clock", async () => {
  const claims = { sub: "x", iss: "y", exp: 1, nbf: NOW_SECONDS + 86_400, "https://example.com/x": [{}] };
  expect(await outcomeOf(await makeProof({ claims }))).toBe("accepted");
});
