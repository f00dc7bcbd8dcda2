import { calculateJwkThumbprint } from "jose";
import { beforeAll, describe, expect, it } from "vitest";
import {
  createDoorResponse,
  createDpopProof,
  type ProofKey,
  rawSignatureFromDer,
  webCryptoProofKey,
} from "../../src/client/index.ts";
import { digestOf } from "../../src/shared/identifiers.ts";
import { createChallenge, verifyPossession } from "../../src/verify/index.ts";
import { makeNonce } from "../../src/worker/dpop/nonce.ts";
import { verifyDpopProof } from "../../src/worker/dpop/verify-proof.ts";
import {
  APPLICATION_ID,
  BODY,
  CALL,
  KEY,
  NONCE_KEY,
  newKey,
  outcomeOf,
  part,
  signParts,
  UDID,
  URL_OF_CALL,
} from "../dpop/support.ts";

let key: ProofKey;
beforeAll(async () => {
  key = await webCryptoProofKey(KEY.pair);
});

/** What a proof is made for, by `key`. */
const request = () => ({
  key,
  applicationId: APPLICATION_ID,
  method: "POST",
  url: URL_OF_CALL,
  udid: UDID,
  body: BODY,
  now: CALL.now,
});

describe("the client's proof passes the service's check (contract section 15)", () => {
  it("the service accepts a client's proof with a WebCrypto key that is not extractable", async () => {
    expect(KEY.pair.privateKey.extractable).toBe(false);
    const result = await verifyDpopProof(await createDpopProof(request()), CALL);
    expect(result).toEqual({ ok: true, jwk: KEY.jwk, thumbprint: await calculateJwkThumbprint(KEY.jwk) });
  });

  it("the service accepts a client's proof with a body as bytes or outside ASCII, without one, and with the current time", async () => {
    const bytes = new TextEncoder().encode(`--${BODY}--`).subarray(2, -2);
    expect(await outcomeOf(await createDpopProof({ ...request(), body: bytes }))).toBe("accepted");
    const { body: _, now: __, ...rest } = request();
    const bodyHash = await digestOf("");
    expect(await outcomeOf(await createDpopProof({ ...rest, now: CALL.now }), { bodyHash })).toBe("accepted");
    const body = '{"userId":"\u00e4lice \u2713"}';
    const arrived = { bodyHash: await digestOf(body), now: Date.now() };
    expect(await outcomeOf(await createDpopProof({ ...rest, body }), arrived)).toBe("accepted");
  });

  it("the service accepts a client's proof with a nonce, however wrong the phone's clock is", async () => {
    const nonce = await makeNonce(NONCE_KEY, CALL.now);
    const late = { ...request(), now: CALL.now + 86_400_000 };
    expect(await outcomeOf(await createDpopProof(late))).toBe("USE_DPOP_NONCE stale-iat");
    expect(await outcomeOf(await createDpopProof({ ...late, nonce }))).toBe("accepted");
  });

  it("a client's proof has the URL without query and fragment (RFC 9449 section 4.2), and a new jti each time", async () => {
    const proofs = [
      await createDpopProof({ ...request(), url: `${URL_OF_CALL}?a=1#b` }),
      await createDpopProof(request()),
    ];
    const claims = proofs.map((proof) => JSON.parse(atob(proof.split(".")[1] ?? "")));
    expect(claims.map(({ htu }) => htu)).toEqual([URL_OF_CALL, URL_OF_CALL]);
    expect(claims[0].jti).toMatch(/^[\w-]{22}$/);
    expect(claims[0].jti).not.toBe(claims[1].jti);
  });

  it("a client's proof contains only the public members of the app's key", async () => {
    const publicJwk = { ...key.publicJwk, d: "secret", kid: "mine" };
    const proof = await createDpopProof({ ...request(), key: { ...key, publicJwk } });
    expect(atob(proof.split(".")[0] ?? "")).not.toContain("secret");
    expect(await outcomeOf(proof)).toBe("accepted");
  });
});

describe("the client's response opens a door that challenges (contract section 15)", () => {
  const applicationId = "app_0123456789abcdefghjk";
  const now = CALL.now;
  let badgeSignature: string;
  let keys: { publicKey: string };

  beforeAll(async () => {
    const service = await newKey();
    const spki = await crypto.subtle.exportKey("spki", service.pair.publicKey);
    if (!(spki instanceof ArrayBuffer)) throw new Error("not DER");
    keys = { publicKey: btoa(String.fromCharCode(...new Uint8Array(spki))) };
    const claims = { sub: "1004711815", aud: applicationId, iat: now / 1000, client_signature: "AA==" };
    const header = { alg: "ES256", kid: "k", typ: "badge-signature+jwt" };
    badgeSignature = await signParts(part(header), part({ ...claims, cnf: { jwk: KEY.jwk } }), service);
  });

  const door = () => ({ doorId: "lobby-1", applicationId, keys, now });

  it("a client's response opens the door that challenged", async () => {
    const challenge = createChallenge(door());
    const response = await createDoorResponse({ key, challenge, applicationId, badgeSignature });
    const result = await verifyPossession({ badgeSignature, response }, { ...door(), challenge });
    expect(result).toMatchObject({ ok: true });
  });

  it("a client signs nothing but a challenge as a response", async () => {
    for (const challenge of [
      "",
      "badge-possession-v2.a.b.1",
      "eyJhbGciOiJFUzI1NiJ9.e30",
      `${createChallenge(door())}\n`,
    ]) {
      const made = createDoorResponse({ key, challenge, applicationId, badgeSignature });
      await expect(made, challenge).rejects.toThrow(RangeError);
    }
  });
});

describe("a signer of the app's own", () => {
  /** r with its highest bit set, s with a zero byte before it. */
  const r = Uint8Array.from({ length: 32 }, (_, index) => 0x80 + index);
  const s = Uint8Array.from({ length: 32 }, (_, index) => index);
  const der = Uint8Array.of(0x30, 2 + 33 + 2 + 31, 0x02, 33, 0, ...r, 0x02, 31, ...s.subarray(1));

  it("a signer that returns DER, as key stores do, gets an error that names the function to convert it", async () => {
    const store: ProofKey = { publicJwk: key.publicJwk, sign: async () => der };
    await expect(createDpopProof({ ...request(), key: store })).rejects.toThrow("rawSignatureFromDer");
  });

  it("a signer of the app's own can convert DER to r and s, 32 bytes each", () => {
    expect(rawSignatureFromDer(der)).toEqual(Uint8Array.of(...r, ...s));
    const tiny = Uint8Array.of(0x30, 6, 0x02, 1, 7, 0x02, 1, 9);
    expect(rawSignatureFromDer(tiny)).toEqual(
      Uint8Array.from({ length: 64 }, (_, i) => (i === 31 ? 7 : i === 63 ? 9 : 0)),
    );
  });

  it("the conversion from DER throws a RangeError for anything else", () => {
    for (const bytes of [
      Uint8Array.of(...r, ...s),
      Uint8Array.of(0x31, ...der.subarray(1)),
      Uint8Array.of(...der, 0),
      der.subarray(0, -1),
      Uint8Array.of(0x30, 0, ...der.subarray(2)),
      Uint8Array.of(0x30, 5, 0x02, 0, 0x02, 1, 9),
      Uint8Array.of(0x30, 38, 0x02, 33, 1, ...r, 0x02, 1, 9),
      Uint8Array.of(0x30, 3, 0x02, 1, 7),
    ]) {
      expect(() => rawSignatureFromDer(bytes), bytes.join()).toThrow(RangeError);
    }
  });

  it("a signer that is a WebCrypto pair of another curve or with swapped halves is refused", async () => {
    const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-384" }, false, ["sign", "verify"]);
    if (!("privateKey" in pair)) throw new Error("not a pair");
    const { publicKey, privateKey } = KEY.pair;
    await expect(webCryptoProofKey(pair)).rejects.toThrow(RangeError);
    for (const half of [publicKey, privateKey]) {
      await expect(webCryptoProofKey({ publicKey: half, privateKey: half })).rejects.toThrow(RangeError);
    }
  });
});
