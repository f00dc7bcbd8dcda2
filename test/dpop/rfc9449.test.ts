import * as dpop from "dpop";
import { calculateJwkThumbprint, exportJWK } from "jose";
import { beforeAll, describe, expect, it } from "vitest";
import { digestOf } from "../../src/shared/identifiers.ts";
import { makeNonce } from "../../src/worker/dpop/nonce.ts";
import { type ProvenCall, verifyDpopProof } from "../../src/worker/dpop/verify-proof.ts";
import {
  APPLICATION_ID,
  BODY,
  CALL,
  CLAIMS,
  HEADER,
  KEY,
  makeProof,
  NONCE_KEY,
  NOW_SECONDS,
  OTHER_KEY,
  outcomeOf,
  part,
  signParts,
  UDID,
  URL_OF_CALL,
} from "./support.ts";

describe("a proof by an independent maker (contract section 15: dpop of npm)", () => {
  let pair: dpop.KeyPair;
  let call: ProvenCall;

  beforeAll(async () => {
    pair = await dpop.generateKeyPair("ES256");
    // It takes `iat` from the clock.
    call = { ...CALL, now: Date.now() };
  });

  const make = async (nonce?: string) => {
    const more = { aud: APPLICATION_ID, body_hash: await digestOf(BODY) };
    return dpop.generateProof(pair, URL_OF_CALL, "POST", nonce, UDID, more);
  };

  it("a proof by an independent maker is accepted, with the thumbprint and the public members of its key", async () => {
    const result = await verifyDpopProof(await make(), call);
    const jwk = await exportJWK(pair.publicKey);
    expect(result).toEqual({
      ok: true,
      thumbprint: await dpop.calculateThumbprint(pair.publicKey),
      jwk,
    });
  });

  it("a proof by an independent maker is accepted with a nonce of the service", async () => {
    const nonce = await makeNonce(NONCE_KEY, call.now);
    expect(await outcomeOf(await make(nonce), call)).toBe("accepted");
  });
});

const OTHER_BODY_HASH = await digestOf(`${BODY} `);

// Those that a proof fails by itself, and everything else that is refused: refusals.test.ts.
describe("the checks of RFC 9449 section 4.3 against the call, by their numbers", () => {
  it("1: there is not more than one DPoP header", async () => {
    const proof = await makeProof();
    const headers = new Headers([
      ["DPoP", proof],
      ["DPoP", proof],
    ]);
    expect(await outcomeOf(headers.get("DPoP") ?? "")).toBe("INVALID_PROOF several-headers");
  });

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

  it("9: whatever the query and fragment of either URL", async () => {
    const urls = [`${URL_OF_CALL}?x=1`];
    expect(await outcomeOf(await makeProof(), { urls })).toBe("accepted");
    expect(await outcomeOf(await makeProof({ claims: { htu: `${URL_OF_CALL}?y=2#z` } }), { urls })).toBe("accepted");
  });

  it("11: without a nonce, iat is at most 60 s from the service's clock, either way", async () => {
    const at = async (seconds: number) => outcomeOf(await makeProof({ claims: { iat: NOW_SECONDS + seconds } }));
    for (const seconds of [-60, 0, 60]) expect(await at(seconds)).toBe("accepted");
    for (const seconds of [-61, 61, -86_400, 1e12]) expect(await at(seconds)).toBe("USE_DPOP_NONCE stale-iat");
  });

  it("11: with a nonce, a phone whose clock is a day wrong still passes, for 300 s", async () => {
    for (const day of [-86_400, 86_400]) {
      const nonce = await makeNonce(NONCE_KEY, CALL.now);
      const proof = await makeProof({ claims: { iat: NOW_SECONDS + day, nonce } });
      expect(await outcomeOf(proof, { now: CALL.now + 300_999 })).toBe("accepted");
      expect(await outcomeOf(proof, { now: CALL.now + 301_000 })).toBe("USE_DPOP_NONCE stale-nonce");
    }
  });
});

describe("the examples of RFC 9449", () => {
  it("ath of the access token of RFC 9449 section 7.1 is as printed there", async () => {
    expect(await digestOf("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU")).toBe(
      "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo",
    );
  });

  it("the thumbprint of the key of section 4.1", async () => {
    const jwk = {
      kty: "EC",
      x: "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
      y: "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
      crv: "P-256",
    };
    expect(await calculateJwkThumbprint(jwk)).toBe("0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I");
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

it("the last of duplicate members counts, for every check", async () => {
  const json = JSON.stringify(CLAIMS);
  const duplicated = (first: string, last: string) => json.replace('"htm":"POST"', `"htm":"${first}","htm":"${last}"`);
  expect(await outcomeOf(await signParts(part(HEADER), part(duplicated("GET", "POST"))))).toBe("accepted");
  expect(await outcomeOf(await signParts(part(HEADER), part(duplicated("POST", "GET"))))).toBe(
    "INVALID_PROOF wrong-method",
  );
  // The key that verifies is the key that is reported.
  const twoKeys = `{"typ":"dpop+jwt","alg":"ES256","jwk":${JSON.stringify(OTHER_KEY.jwk)},"jwk":${JSON.stringify(KEY.jwk)}}`;
  expect(await verifyDpopProof(await signParts(part(twoKeys), part(CLAIMS)), CALL)).toMatchObject({
    ok: true,
    jwk: KEY.jwk,
  });
  expect(await outcomeOf(await signParts(part(twoKeys), part(CLAIMS), OTHER_KEY))).toBe(
    "INVALID_PROOF wrong-signature",
  );
});
