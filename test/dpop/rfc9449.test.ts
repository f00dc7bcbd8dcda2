import * as dpop from "dpop";
import { calculateJwkThumbprint, exportJWK } from "jose";
import { expect, it } from "vitest";
import { digestOf } from "../../src/shared/identifiers.ts";
import { makeNonce } from "../../src/worker/dpop/nonce.ts";
import { verifyDpopProof } from "../../src/worker/dpop/verify-proof.ts";
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

it("a proof by an independent maker is accepted, also with a nonce, with the thumbprint and the public members of its key (contract section 15: dpop of npm)", async () => {
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

it("the thumbprint and the reported key depend on the required members alone (RFC 7638)", async () => {
  const jwk = { ext: true, key_ops: ["verify"], alg: "ES256", use: "sig", kid: "mine", ...KEY.jwk };
  const result = await verifyDpopProof(await makeProof({ header: { jwk } }), CALL);
  expect(result).toEqual({ ok: true, thumbprint: await calculateJwkThumbprint(KEY.jwk), jwk: KEY.jwk });
  expect(JSON.stringify(result)).toContain(JSON.stringify(KEY.jwk));
});

it("claims that the profile does not know are ignored, also times of the device's clock", async () => {
  const claims = { sub: "x", iss: "y", exp: 1, nbf: NOW_SECONDS + 86_400, "https://example.com/x": [{}] };
  expect(await outcomeOf(await makeProof({ claims }))).toBe("accepted");
});
