import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, importSPKI, type JWK, jwtVerify } from "jose";
import { afterEach, describe, expect, it, vi } from "vitest";
import { makeSigningKey } from "../../src/shared/credentials.ts";
import { signingKey } from "../../src/shared/schema.ts";
import { verifyBadgeSignature } from "../../src/verify/badge-signature.ts";
import { invite } from "../invitations/support/calls.ts";
import { createApplication, type TestApplication, testSealer } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { call, requestBadge, sign } from "../support/http.ts";

const CLIENT_SIGNATURE = "aGVsbG8gZG9vcg==";

async function issue(application: TestApplication, udid: string): Promise<{ badgeId: string; publicKey: string }> {
  const { status, body } = await requestBadge(application, udid, { userId: `user of ${udid}` });
  expect(status).toBe(201);
  return { badgeId: String(body.badgeId), publicKey: String(body.publicKey) };
}

async function signature(application: TestApplication, udid: string): Promise<string> {
  const { status, body } = await sign(application, udid, { base64: CLIENT_SIGNATURE });
  expect(status).toBe(200);
  return String(body.signature);
}

async function jwks(application: TestApplication): Promise<{ keys: JWK[] }> {
  const { status, body } = await call("GET", `/v1/applications/${application.id}/jwks.json`);
  expect(status).toBe(200);
  const { keys } = body;
  if (!Array.isArray(keys)) throw new Error("no keys");
  return { keys };
}

/** What `key rotate` does. @returns the public key that signs from then on */
async function addKey(application: TestApplication, signsFrom: number): Promise<string> {
  const key = await makeSigningKey(await testSealer(), application.id);
  const columns = { applicationId: application.id, createdAt: Date.now(), signsFrom };
  await drizzle(homeDatabase())
    .insert(signingKey)
    .values({ ...key, ...columns });
  return key.publicKey;
}

/** A rotation that is over: all isolates know the new key, and new badges get it. */
async function rotate(application: TestApplication): Promise<void> {
  await addKey(application, Date.now() + 25_000);
  vi.setSystemTime(Date.now() + 30_000);
}

/** A badge by an invitation. */
async function claim(application: TestApplication, udid: string): Promise<{ badgeId: string; publicKey: string }> {
  const { token: invitationToken } = await invite(application);
  const { status, body } = await requestBadge(application, udid, { userId: "guest", invitationToken });
  expect(status).toBe(201);
  return { badgeId: String(body.badgeId), publicKey: String(body.publicKey) };
}

async function expectSignature(application: TestApplication, udid: string, publicKey: string): Promise<void> {
  const key = await importSPKI(`-----BEGIN PUBLIC KEY-----\n${publicKey}\n-----END PUBLIC KEY-----`, "ES256");
  await jwtVerify(await signature(application, udid), key, { currentDate: new Date() });
}

afterEach(() => {
  vi.useRealTimers();
});

describe("the signature of a badge (contract section 3)", () => {
  it("is an ES256 JWT with exactly the documented header and claims", async () => {
    const application = await createApplication();
    const { badgeId } = await issue(application, "phone");
    const jwt = await signature(application, "phone");
    const header = decodeProtectedHeader(jwt);
    expect(header).toEqual({ alg: "ES256", kid: header.kid, typ: "badge-signature+jwt" });
    const claims = decodeJwt(jwt);
    expect(claims).toEqual({
      sub: badgeId,
      aud: application.id,
      iat: claims.iat,
      client_signature: CLIENT_SIGNATURE,
    });
    expect(Math.abs((claims.iat ?? 0) - Date.now() / 1000)).toBeLessThan(60);
  });

  it("expires when the application has a signature lifetime, and only then", async () => {
    const application = await createApplication({ signatureLifetimeSeconds: 90 });
    await issue(application, "phone");
    const { iat = 0, exp } = decodeJwt(await signature(application, "phone"));
    expect(exp).toBe(iat + 90);
  });

  it("verifies with jose and with the published verifier, by public key and by key set", async () => {
    const application = await createApplication();
    const { badgeId, publicKey } = await issue(application, "phone");
    const jwt = await signature(application, "phone");
    const keys = await jwks(application);
    await jwtVerify(jwt, createLocalJWKSet(keys), { audience: application.id, subject: badgeId });
    const expected = { applicationId: application.id, now: Date.now(), badgeNumber: badgeId };
    expect(await verifyBadgeSignature(jwt, { ...expected, keys })).toMatchObject({ ok: true, badgeNumber: badgeId });
    expect(await verifyBadgeSignature(jwt, { ...expected, keys: { publicKey } })).toMatchObject({ ok: true });
  });

  it("is not given to a device without a badge", async () => {
    const application = await createApplication();
    expect(await sign(application, "stranger", { base64: CLIENT_SIGNATURE })).toMatchObject({
      status: 404,
      body: { error: "UNKNOWN_BADGE" },
    });
  });
});

describe("rotation of signing keys (contract sections 1 and 9)", () => {
  it("keeps a badge's signatures on the key it was issued with, and gives later badges the newer key", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const application = await createApplication();
    const before = await issue(application, "old phone");
    await rotate(application);
    const after = await issue(application, "new phone");
    expect(after.publicKey).not.toBe(before.publicKey);
    for (const [udid, badge] of [["old phone", before] as const, ["new phone", after] as const]) {
      const key = await importSPKI(`-----BEGIN PUBLIC KEY-----\n${badge.publicKey}\n-----END PUBLIC KEY-----`, "ES256");
      const { payload } = await jwtVerify(await signature(application, udid), key, { currentDate: new Date() });
      expect(payload.sub).toBe(badge.badgeId);
    }
    const oldKey = { publicKey: before.publicKey };
    const forged = { keys: oldKey, applicationId: application.id, now: Date.now() };
    expect(await verifyBadgeSignature(await signature(application, "new phone"), forged)).toEqual({
      ok: false,
      reason: "bad-signature",
    });
  });

  it("publishes every key that a live badge may use, with the key IDs of the signatures", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const application = await createApplication();
    await issue(application, "old phone");
    await rotate(application);
    await issue(application, "new phone");
    const { keys } = await jwks(application);
    const used = [await signature(application, "old phone"), await signature(application, "new phone")];
    expect(used.map((jwt) => decodeProtectedHeader(jwt).kid)).toEqual(keys.map(({ kid }) => kid));
    for (const key of keys) {
      expect(key).toEqual({ kty: "EC", crv: "P-256", x: key.x, y: key.y, kid: key.kid, alg: "ES256", use: "sig" });
    }
  });

  it("gives new badges a key from its time on: not before, and by login and claim alike", async () => {
    const start = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: start });
    const application = await createApplication();
    const first = await issue(application, "first phone");
    const later = await addKey(application, start + 600_000);
    vi.setSystemTime(start + 30_000);
    expect((await jwks(application)).keys).toHaveLength(2);
    vi.setSystemTime(start + 599_999);
    expect((await issue(application, "phone before")).publicKey).toBe(first.publicKey);
    expect((await claim(application, "guest before")).publicKey).toBe(first.publicKey);
    vi.setSystemTime(start + 600_000);
    expect((await issue(application, "phone after")).publicKey).toBe(later);
    expect((await claim(application, "guest after")).publicKey).toBe(later);
    await expectSignature(application, "first phone", first.publicKey);
    await expectSignature(application, "guest before", first.publicKey);
    await expectSignature(application, "guest after", later);
  });

  it("never returns to an earlier key: of two rotations the later one wins", async () => {
    const start = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: start });
    const application = await createApplication();
    const slow = await addKey(application, start + 600_000);
    const urgent = await addKey(application, start + 25_000);
    const atLast = await addKey(application, start + 900_000);
    const given = async (udid: string, milliseconds: number) => {
      vi.setSystemTime(start + milliseconds);
      return (await issue(application, udid)).publicKey;
    };
    expect([urgent, atLast, slow]).not.toContain(await given("at 24 s", 24_999));
    expect(await given("at 25 s", 25_000)).toBe(urgent);
    expect(await given("at 10 min", 600_000)).toBe(urgent);
    expect(await given("at 15 min", 900_000)).toBe(atLast);
  });

  it("gives badges the first key also when it was made by a clock that is ahead", async () => {
    const application = await createApplication();
    await drizzle(homeDatabase())
      .update(signingKey)
      .set({ signsFrom: Date.now() + 3_600_000 })
      .where(eq(signingKey.applicationId, application.id));
    const { publicKey } = await issue(application, "phone");
    await expectSignature(application, "phone", publicKey);
  });

  it("publishes the key set to everybody, cacheable for five minutes, and responds 404 to an unknown application", async () => {
    const application = await createApplication({ disabledAt: Date.now() });
    const { headers } = await call("GET", `/v1/applications/${application.id}/jwks.json`);
    expect(headers.get("Cache-Control")).toBe("public, max-age=300");
    expect(await call("GET", "/v1/applications/app_00000000000000000000/jwks.json")).toMatchObject({
      status: 404,
      body: { error: "UNKNOWN_APPLICATION" },
    });
  });
});
