import { base64url, calculateJwkThumbprint, decodeJwt } from "jose";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  type DeviceClientOptions,
  KeyMismatchError,
  type ProofKey,
  webCryptoProofKey,
} from "../../src/client/index.ts";
import { newKey } from "../dpop/support.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { device, failureOf, fakeService, server, worker } from "./support.ts";

const UDID = "phone";
const BASE64 = "aGVsbG8=";
const INVALID_PROOF = { status: 401, code: "INVALID_PROOF" };

let application: TestApplication;
let key: ProofKey;
let otherKey: ProofKey;

const newProofKey = async () => webCryptoProofKey((await newKey()).pair);

beforeEach(async () => {
  application = await createApplication();
  [key, otherKey] = [await newProofKey(), await newProofKey()];
});

const phoneWith = (proofKey?: ProofKey, options: Partial<DeviceClientOptions> = {}) =>
  device(application, UDID, { proofKey, ...options });

describe("whether a badge is this phone's own (contract section 15)", () => {
  it("the thumbprint tells whether a badge is this phone's own: in the 201 and in every 200 of a bound badge, in none of an unbound one", async () => {
    const keyThumbprint = await calculateJwkThumbprint(key.publicJwk);
    for (const created of [true, false]) {
      expect(await phoneWith(key).requestBadge({ userId: "alice" })).toMatchObject({ created, keyThumbprint });
    }
    for (const phone of [phoneWith(), phoneWith(), phoneWith(key)]) {
      expect(await phone.requestBadge({ userId: "bob" })).not.toHaveProperty("keyThumbprint");
    }
  });

  it("a badge bound to another key is an error of its own, and does not become the one that signs", async () => {
    const other = await calculateJwkThumbprint(otherKey.publicJwk);
    const fetch: typeof worker = async (url, init) => {
      if (url.endsWith("/sign")) return worker(url, init);
      return Response.json({ badgeId: "7", keyThumbprint: other });
    };
    const { badgeId } = await phoneWith(key).requestBadge({ userId: "alice" });
    const phone = phoneWith(key, { fetch });
    const error = await failureOf(phone.requestBadge({ userId: "alice" }));
    expect(error).toBeInstanceOf(KeyMismatchError);
    expect(error).toMatchObject({ name: "KeyMismatchError", badgeId: "7", keyThumbprint: other });
    expect(String(error)).toContain("rebind");
    expect(decodeJwt(await phone.sign(BASE64)).sub).toBe(badgeId);
    expect(await failureOf(phoneWith(undefined, { fetch }).requestBadge({ userId: "a" }))).toBeInstanceOf(
      KeyMismatchError,
    );
  });

  it("one that somebody requested without a key before is refused by a client that wants its badge bound", async () => {
    const stranger = await phoneWith().requestBadge({ userId: "alice" });
    const error = await failureOf(phoneWith(key, { requireBound: true }).requestBadge({ userId: "alice" }));
    expect(error).toBeInstanceOf(KeyMismatchError);
    expect(error).toMatchObject({ badgeId: stranger.badgeId, keyThumbprint: null });
    const phone = phoneWith(key, { requireBound: true });
    expect(await failureOf(phone.requestBadge({ userId: "alice" }))).toBeInstanceOf(KeyMismatchError);
    expect(await failureOf(phone.sign(BASE64))).toMatchObject({ name: "KeyMismatchError", badgeId: stranger.badgeId });
    const { badgeId } = await phone.requestBadge({ userId: "bob" });
    expect(await failureOf(phone.requestBadge({ userId: "alice" }))).toBeInstanceOf(KeyMismatchError);
    expect(JSON.parse(atob((await phone.sign(BASE64)).split(".")[1] ?? ""))).toMatchObject({ sub: badgeId });
  });
});

const CLAIMS = { name: "Ägä~ü? ✓ 🎫", sub: "7" };

it.each([
  { requireBound: false, claims: CLAIMS, error: null },
  { requireBound: true, claims: { ...CLAIMS, cnf: { jwk: {} } }, error: null },
  { requireBound: true, claims: CLAIMS, error: { name: "KeyMismatchError", badgeId: "7", keyThumbprint: null } },
  // Taken for a signature of an unbound badge.
  { requireBound: true, claims: null, error: { name: "KeyMismatchError", keyThumbprint: null } },
])(
  "sign reads a signature whose claims are not all ASCII, or no object, without a TextDecoder, as in React Native: %j",
  async ({ requireBound, claims, error }) => {
    vi.stubGlobal("TextDecoder", undefined);
    onTestFinished(() => void vi.unstubAllGlobals());
    const signature = `e30.${base64url.encode(JSON.stringify(claims))}.c2ln`;
    const { options } = fakeService(Response.json({ signature }));
    const signed = phoneWith(key, { requireBound, ...options }).sign(BASE64);
    if (error) expect(await failureOf(signed)).toMatchObject(error);
    else expect(await signed).toBe(signature);
  },
);

it("rebindBadge lets another key take the badge over; for a badge that has ended or does not exist it is refused (contract section 15)", async () => {
  const client = server(application);
  const { badgeId } = await phoneWith(key).requestBadge({ userId: "alice" });
  const moved = phoneWith(otherKey);
  expect(await failureOf(moved.requestBadge({ userId: "alice" }))).toMatchObject(INVALID_PROOF);
  expect(await client.rebindBadge(badgeId)).toMatchObject({ id: badgeId, state: "active" });
  expect(await moved.requestBadge({ userId: "alice" })).toMatchObject({ created: false, badgeId });
  expect(await failureOf(phoneWith(key).sign(BASE64))).toMatchObject(INVALID_PROOF);
  await client.revokeBadge(badgeId);
  expect(await failureOf(client.rebindBadge(badgeId))).toMatchObject({ status: 409, code: "ENDED_BADGE" });
});
