import { afterEach, describe, expect, it, vi } from "vitest";
import { type Expectations, verifyBadgeSignature } from "../../src/verify/badge-signature.ts";
import { expectEach, nameOf } from "./each-case.ts";
import { CASES, expectationsOf, GOOD, OUTCOMES, resultOf, type Vector } from "./vectors.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

describe("the published vectors (contract section 3)", () => {
  it("each published vector of badge signatures is decided as it says", async () => {
    const actual = (vector: Vector) => verifyBadgeSignature(vector.jwt, expectationsOf(vector));
    await expectEach(CASES, nameOf, { actual, expected: resultOf });
  });

  it("the published vectors of badge signatures cover every outcome", () => {
    expect(new Set(CASES.map(({ expected }) => expected))).toEqual(new Set(OUTCOMES));
  });
});

describe("a key (contract section 3)", () => {
  it("a key is refused as unknown when the runtime imports it and fails to verify with it, as Deno does with a point off the curve", async () => {
    vi.spyOn(crypto.subtle, "verify").mockRejectedValue(new TypeError("Invalid key format"));
    for (const good of GOOD) {
      expect(await verifyBadgeSignature(good.jwt, expectationsOf(good))).toEqual({ ok: false, reason: "unknown-key" });
    }
  });
});

/** Verifies an accepted case with changed expectations. */
function verifyGood(changes: object = {}) {
  const [good] = GOOD;
  if (good === undefined) throw new Error("no accepted case");
  const expected: Expectations = { ...expectationsOf(good), ...changes };
  return verifyBadgeSignature(good.jwt, expected);
}

describe("a caller's mistake", () => {
  it.each([
    { now: Number.NaN },
    { now: Number.POSITIVE_INFINITY },
    { now: -1 },
    { now: new Date() },
    { clockToleranceSeconds: Number.NaN },
    { clockToleranceSeconds: -1 },
    { clockToleranceSeconds: "60" },
    { maxAgeSeconds: Number.NaN },
    { maxAgeSeconds: -1 },
    { maxAgeSeconds: undefined },
  ])("a caller's mistake in a number throws a RangeError: %o", async (changes) => {
    await expect(verifyGood(changes)).rejects.toThrow(RangeError);
  });

  it("a check with an undefined badge number or client signature is refused, not skipped", async () => {
    expect(await verifyGood({ badgeNumber: undefined })).toEqual({ ok: false, reason: "wrong-badge-number" });
    expect(await verifyGood({ clientSignature: undefined })).toEqual({ ok: false, reason: "wrong-client-signature" });
  });

  it.each([{ keys: [] }, { keys: "all" }, { keys: [null, 7, "key", []] }])(
    "a caller's mistake in the key set means that no key is found: %o",
    async (keys) => {
      expect(await verifyGood({ keys })).toEqual({ ok: false, reason: "unknown-key" });
    },
  );

  it("a mistake in one entry of the key set does not affect the others", async () => {
    const { publicKeys } = GOOD[0] ?? {};
    expect(await verifyGood({ keys: { keys: [null, 7, "key", [], ...(publicKeys?.keys ?? [])] } })).toMatchObject({
      ok: true,
    });
  });

  it("a check without an application ID is a refusal", async () => {
    expect(await verifyGood({ applicationId: undefined })).toEqual({ ok: false, reason: "wrong-audience" });
  });
});

it("clocks may differ by 60 seconds by default", async () => {
  const [good] = GOOD;
  const issuedAt = (good?.claims?.iat ?? 0) * 1000;
  expect(await verifyWithoutTolerance(issuedAt - 60_000)).toMatchObject({ ok: true });
  expect(await verifyWithoutTolerance(issuedAt - 60_001)).toEqual({ ok: false, reason: "not-yet-valid" });
});

function verifyWithoutTolerance(now: number) {
  const [good] = GOOD;
  if (good === undefined) throw new Error("no accepted case");
  const { clockToleranceSeconds: _, ...expected } = expectationsOf(good);
  return verifyBadgeSignature(good.jwt, { ...expected, now });
}
