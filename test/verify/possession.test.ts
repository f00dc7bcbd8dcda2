import { describe, expect, it } from "vitest";
import { createChallenge, verifyPossession } from "../../src/verify/index.ts";
import { expectEach, nameOf } from "./each-case.ts";
import { BOUND_KEY, expectationsOf, POSSESSION_CASES, POSSESSION_FAILURES } from "./possession-vectors.ts";

const NOW = 1_800_000_060_000;

it("the published vectors of possession are each decided as they say, and have every outcome of their own (contract section 15)", async () => {
  await expectEach(POSSESSION_CASES, nameOf, {
    actual: (vector) => verifyPossession(vector, expectationsOf(vector)),
    expected: ({ expected }) =>
      expected === "ok" ? expect.objectContaining({ ok: true, boundKey: BOUND_KEY }) : { ok: false, reason: expected },
  });
  const outcomes = new Set(POSSESSION_CASES.map(({ expected }) => expected));
  for (const outcome of ["ok", ...POSSESSION_FAILURES]) expect(outcomes).toContain(outcome);
});

const [good] = POSSESSION_CASES;
if (good === undefined) throw new Error("no case");

describe("a door that challenges (contract section 15)", () => {
  it("a door that challenges checks the caller's other expectations, and refuses when it has lost its challenge", async () => {
    const verify = (changes: object) => verifyPossession(good, { ...expectationsOf(good), ...changes });
    expect(await verify({ badgeNumber: "7" })).toEqual({ ok: false, reason: "wrong-badge-number" });
    for (const challenge of [undefined, null]) {
      expect(await verify({ challenge })).toEqual({ ok: false, reason: "wrong-challenge" });
    }
  });

  it("a door accepts a challenge until the last millisecond before its expiry, and none for more than a minute, even if its clock is set back", async () => {
    const outcomeAt = async (now: number, clockToleranceSeconds: number) => {
      const result = await verifyPossession(good, { ...expectationsOf(good), clockToleranceSeconds, now });
      return result.ok ? "ok" : result.reason;
    };
    expect(await outcomeAt(NOW + 9999, 60)).toBe("ok");
    expect(await outcomeAt(NOW + 10_000, 60)).toBe("expired-challenge");
    expect(await outcomeAt(NOW - 50_000, 1e9)).toBe("ok");
    expect(await outcomeAt(NOW - 51_000, 1e9)).toBe("expired-challenge");
  });
});

describe("a challenge (contract section 15)", () => {
  it("a challenge names its version, door and expiry, and has 256 new random bits", () => {
    const challenges = [1, 2].map(() => createChallenge({ doorId: "gate_2-B", now: NOW + 999 }));
    for (const challenge of challenges) {
      expect(challenge).toMatch(/^badge-possession-v1\.gate_2-B\.[A-Za-z0-9_-]{43}\.1800000070$/);
    }
    expect(new Set(challenges).size).toBe(2);
    expect(createChallenge({ doorId: "a", now: NOW, lifetimeSeconds: 60 })).toMatch(/\.1800000120$/);
  });

  it.each([
    { doorId: "" },
    { doorId: "a.b" },
    { doorId: "a\n" },
    { doorId: "a".repeat(65) },
    { now: Number.NaN },
    { now: 1e14 },
    { lifetimeSeconds: 0 },
    { lifetimeSeconds: 61 },
    { now: -1 },
    { lifetimeSeconds: 1.5 },
  ])("a challenge is not made from invalid arguments: %o", (mistake) => {
    expect(() => createChallenge({ doorId: "a", now: NOW, ...mistake })).toThrow(RangeError);
  });
});
