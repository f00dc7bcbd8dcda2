import { drizzle } from "drizzle-orm/d1";
import { createLocalJWKSet, decodeProtectedHeader, importSPKI, jwtVerify } from "jose";
import { describe, expect, it, vi } from "vitest";
import { makeSigningKey } from "../../src/shared/credentials.ts";
import { signingKey } from "../../src/shared/schema.ts";
import { verifyBadgeSignature } from "../../src/verify/badge-signature.ts";
import { keysOf } from "../badges/status-support.ts";
import { createApplication, type TestApplication, testSealer } from "../support/application.ts";
import { useStandingClock } from "../support/clock.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { requestBadge, sign } from "../support/http.ts";
import { invite } from "../support/invitations.ts";

const CLIENT_SIGNATURE = "aGVsbG8gZG9vcg==";

type Issued = Promise<{ badgeId: string; publicKey: string }>;

async function issue(application: TestApplication, udid: string, more: object = {}): Issued {
  const { status, body } = await requestBadge(application, udid, { userId: `user of ${udid}`, ...more });
  expect(status).toBe(201);
  return { badgeId: String(body.badgeId), publicKey: String(body.publicKey) };
}

const claim = async (application: TestApplication, udid: string): Issued =>
  issue(application, udid, { invitationToken: (await invite(application)).token });

async function signature(application: TestApplication, udid: string): Promise<string> {
  const { status, body } = await sign(application, udid, { base64: CLIENT_SIGNATURE });
  expect(status).toBe(200);
  return String(body.signature);
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

async function expectSignature(application: TestApplication, udid: string, publicKey: string) {
  const key = await importSPKI(`-----BEGIN PUBLIC KEY-----\n${publicKey}\n-----END PUBLIC KEY-----`, "ES256");
  return jwtVerify(await signature(application, udid), key, { currentDate: new Date() });
}

useStandingClock();

it("a badge's signature is an ES256 JWT with the documented header and claims, and verifies with jose and the published verifier, by public key and key set (contract section 3)", async () => {
  const application = await createApplication();
  const { badgeId, publicKey } = await issue(application, "phone");
  const jwt = await signature(application, "phone");
  const keys = await keysOf(application);
  expect(decodeProtectedHeader(jwt)).toEqual({ alg: "ES256", kid: keys.keys[0]?.kid, typ: "badge-signature+jwt" });
  const { payload } = await jwtVerify(jwt, createLocalJWKSet(keys));
  const iat = expect.closeTo(Date.now() / 1000, -2);
  expect(payload).toEqual({ sub: badgeId, aud: application.id, iat, client_signature: CLIENT_SIGNATURE });
  const expected = { applicationId: application.id, now: Date.now(), badgeNumber: badgeId };
  expect(await verifyBadgeSignature(jwt, { ...expected, keys })).toMatchObject({ ok: true, badgeNumber: badgeId });
  expect(await verifyBadgeSignature(jwt, { ...expected, keys: { publicKey } })).toMatchObject({ ok: true });
});

describe("rotation of signing keys (contract sections 1 and 9)", () => {
  it("a badge signs by the key it was issued with, one issued or claimed from the new key's time on by that, and both are published", async () => {
    const start = Date.now();
    const application = await createApplication();
    const first = await issue(application, "first phone");
    const later = await addKey(application, start + 600_000);
    vi.setSystemTime(start + 30_000);
    const { keys } = await keysOf(application);
    vi.setSystemTime(start + 599_999);
    expect((await issue(application, "phone before")).publicKey).toBe(first.publicKey);
    expect((await claim(application, "guest before")).publicKey).toBe(first.publicKey);
    vi.setSystemTime(start + 600_000);
    expect((await issue(application, "phone after")).publicKey).toBe(later);
    expect((await claim(application, "guest after")).publicKey).toBe(later);
    expect(later).not.toBe(first.publicKey);
    expect(keys).toHaveLength(2);
    for (const [place, udids] of [
      ["first phone", "guest before"],
      ["phone after", "guest after"],
    ].entries()) {
      const kid = keys[place]?.kid;
      const [x, y] = [expect.any(String), expect.any(String)];
      expect(keys[place]).toEqual({ kty: "EC", crv: "P-256", x, y, kid, alg: "ES256", use: "sig" });
      for (const udid of udids) {
        const { protectedHeader } = await expectSignature(application, udid, place === 0 ? first.publicKey : later);
        expect(protectedHeader.kid).toBe(kid);
      }
    }
    const forged = { keys: { publicKey: first.publicKey }, applicationId: application.id, now: Date.now() };
    const refused = { ok: false, reason: "bad-signature" };
    expect(await verifyBadgeSignature(await signature(application, "phone after"), forged)).toEqual(refused);
  });

  it("a rotation never returns to an earlier key: of two rotations the later one wins; the first key signs before all others, even if the clock that made it was ahead", async () => {
    const start = Date.now();
    const application = await createApplication();
    await runSql("UPDATE signing_key SET signs_from = ?1 WHERE application_id = ?2", start + 3_600_000, application.id);
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

  it("a badge whose signing key D1 lacks, because D1 was restored since the badge was read, gets 503 (section 21)", async () => {
    const application = await createApplication();
    const { badgeId } = await issue(application, "phone");
    const ofBadge = "SELECT signing_key_id FROM badge WHERE number = ?1";
    await runSql(`UPDATE badge SET signing_key_id = -(${ofBadge}) WHERE number = ?1`, Number(badgeId));
    expect(await sign(application, "phone", { base64: CLIENT_SIGNATURE })).toMatchObject({
      ...{ status: 503, body: { error: "UNAVAILABLE" } },
    });
    await runSql(`UPDATE badge SET signing_key_id = -(${ofBadge}) WHERE number = ?1`, Number(badgeId));
    await signature(application, "phone");
  });
});
