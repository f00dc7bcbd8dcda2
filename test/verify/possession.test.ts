import { compactVerify, importJWK } from "jose";
import { describe, expect, it } from "vitest";
import { createChallenge, verifyBadgeSignature, verifyPossession } from "../../src/verify/index.ts";
import { expectEach, nameOf } from "./each-case.ts";
import { expectationsOf, PHONE_KEY, POSSESSION_CASES, POSSESSION_FAILURES } from "./possession-vectors.ts";

const { publicJwk } = PHONE_KEY;
const BOUND_KEY = { kty: "EC", crv: "P-256", x: publicJwk.x, y: publicJwk.y };
const NOW = 1_800_000_060_000;

describe("the published vectors of doors that challenge (contract section 15)", () => {
  it("the published vectors of possession are each decided as they say", async () => {
    await expectEach(POSSESSION_CASES, nameOf, {
      actual: (vector) => verifyPossession(vector, expectationsOf(vector)),
      expected: ({ expected }) =>
        expected === "ok"
          ? expect.objectContaining({ ok: true, boundKey: BOUND_KEY })
          : { ok: false, reason: expected },
    });
  });

  it("the published vectors of doors that challenge cover every outcome of their own", () => {
    const outcomes = new Set(POSSESSION_CASES.map(({ expected }) => expected));
    for (const outcome of ["ok", ...POSSESSION_FAILURES]) expect(outcomes).toContain(outcome);
  });

  it("the published vectors of doors that challenge have the signatures that they say, jose agrees", async () => {
    const key = await importJWK(publicJwk, "ES256");
    const signed = POSSESSION_CASES.filter(
      ({ expected }) => expected === "ok" || expected === "bad-response-signature",
    );
    await expectEach(signed, nameOf, {
      actual: ({ response }) =>
        compactVerify(response, key, { algorithms: ["ES256"] }).then(
          ({ protectedHeader }) => protectedHeader.typ,
          ({ code }: { code: string }) => code,
        ),
      expected: ({ expected }) => (expected === "ok" ? "door-response+jwt" : "ERR_JWS_SIGNATURE_VERIFICATION_FAILED"),
    });
  });
});

const [good] = POSSESSION_CASES;
if (good === undefined) throw new Error("no case");

describe("a door that challenges (contract section 15)", () => {
  it("a door that challenges refuses a copied badge signature without the phone's key, and an old response to a new challenge", async () => {
    const challenge = createChallenge({ doorId: "lobby-1", now: NOW });
    const expected = { ...expectationsOf(good), challenge };
    expect(await verifyBadgeSignature(good.badgeSignature, expected)).toMatchObject({ ok: true, boundKey: BOUND_KEY });
    expect(await verifyPossession(good, expected)).toEqual({ ok: false, reason: "wrong-challenge" });
  });

  it("a door that challenges checks the caller's other expectations of the badge signature", async () => {
    const expected = { ...expectationsOf(good), badgeNumber: "7" };
    expect(await verifyPossession(good, expected)).toEqual({ ok: false, reason: "wrong-badge-number" });
  });

  it.each([{ challenge: undefined }, { challenge: null }])(
    "a door that has lost its challenge refuses, whatever the phone sends: %o",
    async (forgotten: object) => {
      const result = await verifyPossession(good, { ...expectationsOf(good), ...forgotten });
      expect(result).toEqual({ ok: false, reason: "wrong-challenge" });
    },
  );

  it("a door accepts a challenge until the last millisecond before its expiry", async () => {
    const expected = { ...expectationsOf(good), clockToleranceSeconds: 60 };
    expect(await verifyPossession(good, { ...expected, now: NOW + 9999 })).toMatchObject({ ok: true });
    const after = await verifyPossession(good, { ...expected, now: NOW + 10_000 });
    expect(after).toEqual({ ok: false, reason: "expired-challenge" });
  });

  it("a door accepts no challenge for more than a minute, even if its clock is set back", async () => {
    const expected = { ...expectationsOf(good), clockToleranceSeconds: 1e9 };
    expect(await verifyPossession(good, { ...expected, now: NOW - 50_000 })).toMatchObject({ ok: true });
    const before = await verifyPossession(good, { ...expected, now: NOW - 51_000 });
    expect(before).toEqual({ ok: false, reason: "expired-challenge" });
  });
});

describe("a challenge (contract section 15)", () => {
  it("a challenge names its version, door and expiry, and has 256 new random bits", () => {
    const challenges = Array.from({ length: 100 }, () => createChallenge({ doorId: "gate_2-B", now: NOW + 999 }));
    for (const challenge of challenges) {
      expect(challenge).toMatch(/^badge-possession-v1\.gate_2-B\.[A-Za-z0-9_-]{43}\.1800000070$/);
    }
    expect(new Set(challenges).size).toBe(100);
  });

  it("a challenge is valid for as long as the door says", () => {
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
    { now: 1e14 },
    { lifetimeSeconds: 0 },
    { lifetimeSeconds: 61 },
    { lifetimeSeconds: 1.5 },
    { lifetimeSeconds: Number.NaN },
  ])("a challenge is not made from invalid arguments: %o", (mistake) => {
    expect(() => createChallenge({ doorId: "a", now: NOW, ...mistake })).toThrow(RangeError);
  });
});
