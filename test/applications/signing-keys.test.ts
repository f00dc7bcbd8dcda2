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

async function expectSignature(application: TestApplication, udid: string, publicKey: string) {
  const key = await importSPKI(`-----BEGIN PUBLIC KEY-----\n${publicKey}\n-----END PUBLIC KEY-----`, "ES256");
  return jwtVerify(await signature(application, udid), key, { currentDate: new Date() });
}

afterEach(() => {
  vi.useRealTimers();
});

describe("the signature of a badge (contract section 3)", () => {
  it("a badge's signature is an ES256 JWT with exactly the documented header and claims", async () => {
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

  it("a badge's signature verifies with jose and with the published verifier, by public key and by key set", async () => {
    const application = await createApplication();
    const { badgeId, publicKey } = await issue(application, "phone");
    const jwt = await signature(application, "phone");
    const keys = await jwks(application);
    await jwtVerify(jwt, createLocalJWKSet(keys), { audience: application.id, subject: badgeId });
    const expected = { applicationId: application.id, now: Date.now(), badgeNumber: badgeId };
    expect(await verifyBadgeSignature(jwt, { ...expected, keys })).toMatchObject({ ok: true, badgeNumber: badgeId });
    expect(await verifyBadgeSignature(jwt, { ...expected, keys: { publicKey } })).toMatchObject({ ok: true });
  });
});

describe("rotation of signing keys (contract sections 1 and 9)", () => {
  it("a badge signs by the key it was issued with, later ones by the newer key, and both are published", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const application = await createApplication();
    const before = await issue(application, "old phone");
    await rotate(application);
    const after = await issue(application, "new phone");
    expect(after.publicKey).not.toBe(before.publicKey);
    const { keys } = await jwks(application);
    expect(keys).toHaveLength(2);
    for (const [place, [udid, badge]] of (
      [
        ["old phone", before],
        ["new phone", after],
      ] as const
    ).entries()) {
      const { payload, protectedHeader } = await expectSignature(application, udid, badge.publicKey);
      expect(payload.sub).toBe(badge.badgeId);
      const { x, y, kid } = keys[place] ?? {};
      expect(keys[place]).toEqual({ kty: "EC", crv: "P-256", x, y, kid, alg: "ES256", use: "sig" });
      expect(protectedHeader.kid).toBe(kid);
    }
    const oldKey = { publicKey: before.publicKey };
    const forged = { keys: oldKey, applicationId: application.id, now: Date.now() };
    expect(await verifyBadgeSignature(await signature(application, "new phone"), forged)).toEqual({
      ok: false,
      reason: "bad-signature",
    });
  });

  it("new badges get a rotated key from its time on: not before, and by login and claim alike", async () => {
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

  it("a rotation never returns to an earlier key: of two rotations the later one wins", async () => {
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

  it("badges get the first key even if the clock that made it was ahead", async () => {
    const application = await createApplication();
    await drizzle(homeDatabase())
      .update(signingKey)
      .set({ signsFrom: Date.now() + 3_600_000 })
      .where(eq(signingKey.applicationId, application.id));
    const { publicKey } = await issue(application, "phone");
    await expectSignature(application, "phone", publicKey);
  });
});
