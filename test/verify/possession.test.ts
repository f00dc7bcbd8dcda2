import { compactVerify, importJWK } from "jose";
import { describe, expect, it } from "vitest";
import { createChallenge, verifyBadgeSignature, verifyPossession } from "../../src/verify/index.ts";
import { expectationsOf, PHONE_KEY, POSSESSION_CASES, POSSESSION_FAILURES } from "./possession-vectors.ts";

const { publicJwk } = PHONE_KEY;
const BOUND_KEY = { kty: "EC", crv: "P-256", x: publicJwk.x, y: publicJwk.y };
const NOW = 1_800_000_060_000;

describe("the published vectors of doors that challenge (contract section 15)", () => {
  it.each(POSSESSION_CASES)("$expected: $name", async (vector) => {
    const result = await verifyPossession(vector, expectationsOf(vector));
    if (vector.expected === "ok") expect(result).toMatchObject({ ok: true, boundKey: BOUND_KEY });
    else expect(result).toEqual({ ok: false, reason: vector.expected });
  });

  it("cover every outcome of their own, and each case has a unique name", () => {
    const outcomes = new Set(POSSESSION_CASES.map(({ expected }) => expected));
    for (const outcome of ["ok", ...POSSESSION_FAILURES]) expect(outcomes).toContain(outcome);
    expect(new Set(POSSESSION_CASES.map(({ expected, name }) => `${expected}: ${name}`)).size).toBe(
      POSSESSION_CASES.length,
    );
  });

  it.each(POSSESSION_CASES.filter(({ expected }) => expected === "ok" || expected === "bad-response-signature"))(
    "jose agrees about the signature: $expected: $name",
    async ({ expected, response }) => {
      const verified = compactVerify(response, await importJWK(publicJwk, "ES256"), { algorithms: ["ES256"] });
      if (expected === "ok") expect((await verified).protectedHeader.typ).toBe("door-response+jwt");
      else await expect(verified).rejects.toMatchObject({ code: "ERR_JWS_SIGNATURE_VERIFICATION_FAILED" });
    },
  );
});

const [good] = POSSESSION_CASES;
if (good === undefined) throw new Error("no case");

describe("a door that challenges (contract section 15)", () => {
  it("refuses a copied badge signature without the phone's key, and an old response to a new challenge", async () => {
    const challenge = createChallenge({ doorId: "lobby-1", now: NOW });
    const expected = { ...expectationsOf(good), challenge };
    expect(await verifyBadgeSignature(good.badgeSignature, expected)).toMatchObject({ ok: true, boundKey: BOUND_KEY });
    expect(await verifyPossession(good, expected)).toEqual({ ok: false, reason: "wrong-challenge" });
  });

  it("checks the caller's other expectations of the badge signature", async () => {
    const expected = { ...expectationsOf(good), badgeNumber: "7" };
    expect(await verifyPossession(good, expected)).toEqual({ ok: false, reason: "wrong-badge-number" });
  });

  it.each([{ challenge: undefined }, { challenge: null }])(
    "that has lost its challenge refuses, whatever the phone sends: %o",
    async (forgotten: object) => {
      const result = await verifyPossession(good, { ...expectationsOf(good), ...forgotten });
      expect(result).toEqual({ ok: false, reason: "wrong-challenge" });
    },
  );

  it("accepts no challenge for more than a minute, even if its clock is set back", async () => {
    const expected = { ...expectationsOf(good), clockToleranceSeconds: 1e9 };
    expect(await verifyPossession(good, { ...expected, now: NOW - 50_000 })).toMatchObject({ ok: true });
    const before = await verifyPossession(good, { ...expected, now: NOW - 51_000 });
    expect(before).toEqual({ ok: false, reason: "expired-challenge" });
  });
});

describe("a challenge (contract section 15)", () => {
  it("names its version, door and expiry, and has 256 new random bits", () => {
    const challenges = Array.from({ length: 100 }, () => createChallenge({ doorId: "gate_2-B", now: NOW + 999 }));
    for (const challenge of challenges) {
      expect(challenge).toMatch(/^badge-possession-v1\.gate_2-B\.[A-Za-z0-9_-]{43}\.1800000070$/);
    }
    expect(new Set(challenges).size).toBe(100);
  });

  it("is valid for as long as the door says", () => {
    expect(createChallenge({ doorId: "a", now: NOW, lifetimeSeconds: 60 })).toMatch(/\.1800000120$/);
    expect(createChallenge({ doorId: "a", now: NOW, lifetimeSeconds: 1 })).toMatch(/\.1800000061$/);
  });

  it.each([
    { doorId: "" },
    { doorId: "a.b" },
    { doorId: "a b" },
    { doorId: "\u00e4" },
    { doorId: "a\n" },
    { doorId: "a".repeat(65) },
    { now: Number.NaN },
    { now: -1 },
    { now: 0 },
    { lifetimeSeconds: 0 },
    { lifetimeSeconds: 61 },
    { lifetimeSeconds: 1.5 },
    { lifetimeSeconds: Number.NaN },
  ])("is not made from invalid arguments: %o", (mistake) => {
    expect(() => createChallenge({ doorId: "a", now: NOW, ...mistake })).toThrow(RangeError);
  });
});
