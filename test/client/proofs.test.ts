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
  OTHER_KEY,
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

  it("the service accepts a client's proof with a body as bytes, and without one", async () => {
    const bytes = new TextEncoder().encode(`--${BODY}--`).subarray(2, -2);
    expect(await outcomeOf(await createDpopProof({ ...request(), body: bytes }))).toBe("accepted");
    const { body: _, ...empty } = request();
    expect(await outcomeOf(await createDpopProof(empty), { bodyHash: await digestOf("") })).toBe("accepted");
  });

  it("the service accepts a client's proof with characters outside ASCII in the body", async () => {
    const body = '{"userId":"\u00e4lice \u2713"}';
    const bodyHash = await digestOf(body);
    expect(await outcomeOf(await createDpopProof({ ...request(), body }), { bodyHash })).toBe("accepted");
  });

  it("the service accepts a client's proof with a nonce, however wrong the phone's clock is", async () => {
    const nonce = await makeNonce(NONCE_KEY, CALL.now);
    const late = { ...request(), now: CALL.now + 86_400_000 };
    expect(await outcomeOf(await createDpopProof(late))).toBe("USE_DPOP_NONCE stale-iat");
    expect(await outcomeOf(await createDpopProof({ ...late, nonce }))).toBe("accepted");
  });

  it("a client's proof has the current time, if none is given", async () => {
    const { now: _, ...rest } = request();
    expect(await outcomeOf(await createDpopProof(rest), { now: Date.now() })).toBe("accepted");
  });

  it.each([
    ["another URL", { url: `${URL_OF_CALL}/sign` }, "INVALID_PROOF wrong-url"],
    ["another method", { method: "GET" }, "INVALID_PROOF wrong-method"],
    ["another application", { applicationId: "app_zyxwvtsrqpnmkjhgfedc" }, "INVALID_PROOF wrong-audience"],
    ["another udid", { udid: "phone-8" }, "INVALID_PROOF wrong-udid"],
    ["another body", { body: "{}" }, "INVALID_PROOF wrong-body"],
    ["a made-up nonce", { nonce: "x" }, "USE_DPOP_NONCE stale-nonce"],
  ])("the service does not accept a client's proof for %s", async (_name, changes, expected) => {
    expect(await outcomeOf(await createDpopProof({ ...request(), ...changes }))).toBe(expected);
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

  const door = (changes: object = {}) => ({ doorId: "lobby-1", applicationId, keys, now, ...changes });

  it("a client's response opens no other door: not with another key, not later, not for another badge signature", async () => {
    const challenge = createChallenge(door());
    const present = async (made: object, changes: object = {}) => {
      const response = await createDoorResponse({ key, challenge, applicationId, badgeSignature, ...made });
      const result = await verifyPossession({ badgeSignature, response }, { ...door(), challenge, ...changes });
      return result.ok ? "opened" : result.reason;
    };
    expect(await present({})).toBe("opened");
    expect(await present({ key: await webCryptoProofKey(OTHER_KEY.pair) })).toBe("bad-response-signature");
    expect(await present({}, { doorId: "lobby-2" })).toBe("wrong-challenge");
    expect(await present({}, { challenge: createChallenge(door()) })).toBe("wrong-challenge");
    expect(await present({}, { now: now + 10_000 })).toBe("expired-challenge");
    expect(await present({ applicationId: "app_zyxwvtsrqpnmkjhgfedc" })).toBe("wrong-application");
    expect(await present({ badgeSignature: `${badgeSignature}x` })).toBe("wrong-badge-signature");
  });

  it("a client's response is not a proof for the service, and a proof is not a response (RFC 8725 section 3.12)", async () => {
    const challenge = createChallenge(door());
    const response = await createDoorResponse({ key, challenge, applicationId, badgeSignature });
    expect(await outcomeOf(response)).toBe("INVALID_PROOF wrong-type");
    const proof = await createDpopProof(request());
    const result = await verifyPossession({ badgeSignature, response: proof }, { ...door(), challenge });
    expect(result).toEqual({ ok: false, reason: "wrong-response-type" });
  });

  it.each(["", "badge-possession-v2.a.b.1", "eyJhbGciOiJFUzI1NiJ9.e30", `${createChallenge({ doorId: "a", now })}\n`])(
    "a client signs nothing but a challenge as a response, not %j",
    async (challenge) => {
      const made = createDoorResponse({ key, challenge, applicationId, badgeSignature });
      await expect(made).rejects.toThrow(RangeError);
    },
  );
});

describe("a signer of the app's own", () => {
  /** r with its highest bit set, s with a zero byte before it. */
  const r = Uint8Array.from({ length: 32 }, (_, index) => 0x80 + index);
  const s = Uint8Array.from({ length: 32 }, (_, index) => index);
  const der = Uint8Array.of(0x30, 2 + 33 + 2 + 31, 0x02, 33, 0, ...r, 0x02, 31, ...s.subarray(1));

  it("a signer that returns DER, as key stores do, gets an error that names the function to convert it", async () => {
    const store: ProofKey = { publicJwk: key.publicJwk, sign: async (bytes) => toDer(await key.sign(bytes)) };
    await expect(createDpopProof({ ...request(), key: store })).rejects.toThrow("rawSignatureFromDer");
    const converting: ProofKey = { ...store, sign: async (bytes) => rawSignatureFromDer(await store.sign(bytes)) };
    for (let tries = 0; tries < 50; tries++) {
      expect(await outcomeOf(await createDpopProof({ ...request(), key: converting }))).toBe("accepted");
    }
  });

  it("a signer of the app's own can convert DER to r and s, 32 bytes each", () => {
    expect(rawSignatureFromDer(der)).toEqual(Uint8Array.of(...r, ...s));
    const tiny = Uint8Array.of(0x30, 6, 0x02, 1, 7, 0x02, 1, 9);
    expect(rawSignatureFromDer(tiny)).toEqual(
      Uint8Array.from({ length: 64 }, (_, i) => (i === 31 ? 7 : i === 63 ? 9 : 0)),
    );
  });

  it.each([
    ["nothing", Uint8Array.of()],
    ["r and s already", Uint8Array.of(...r, ...s)],
    ["another tag", Uint8Array.of(0x31, ...der.subarray(1))],
    ["a byte more", Uint8Array.of(...der, 0)],
    ["a byte less", der.subarray(0, -1)],
    ["a wrong length", Uint8Array.of(0x30, 0, ...der.subarray(2))],
    ["an empty number", Uint8Array.of(0x30, 5, 0x02, 0, 0x02, 1, 9)],
    ["a number of 33 bytes", Uint8Array.of(0x30, 38, 0x02, 33, 1, ...r, 0x02, 1, 9)],
    ["one number", Uint8Array.of(0x30, 3, 0x02, 1, 7)],
  ])("the conversion from DER throws a RangeError for %s", (_name, bytes) => {
    expect(() => rawSignatureFromDer(bytes)).toThrow(RangeError);
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

/** The shortest DER (X.690 section 8.3). */
function toDer(raw: Uint8Array): Uint8Array {
  const integer = (bytes: Uint8Array) => {
    const first = bytes.findIndex((byte) => byte !== 0);
    const shortest = bytes.subarray(first < 0 ? 31 : first);
    const magnitude = (shortest[0] ?? 0) >= 0x80 ? [0, ...shortest] : [...shortest];
    return [0x02, magnitude.length, ...magnitude];
  };
  const content = [...integer(raw.subarray(0, 32)), ...integer(raw.subarray(32))];
  return Uint8Array.of(0x30, content.length, ...content);
}
