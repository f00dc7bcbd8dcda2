import { describe, expect, it, vi } from "vitest";
import { verifyBadgeSignature } from "../../src/verify/badge-signature.ts";
import { expectEach, nameOf } from "./each-case.ts";
import { CASES, expectationsOf, GOOD, OUTCOMES, resultOf, type Vector } from "./vectors.ts";

const [good] = GOOD;
if (good === undefined) throw new Error("no accepted case");

/** Verifies an accepted case with changed expectations. */
const verifyGood = (changes: object = {}) => verifyBadgeSignature(good.jwt, { ...expectationsOf(good), ...changes });

it("each published vector of badge signatures is decided as it says, and together they have every outcome (contract section 3)", async () => {
  const actual = (vector: Vector) => verifyBadgeSignature(vector.jwt, expectationsOf(vector));
  await expectEach(CASES, nameOf, { actual, expected: resultOf });
  expect(new Set(CASES.map(({ expected }) => expected))).toEqual(new Set(OUTCOMES));
});

it("a key is refused as unknown when the runtime imports it and fails to verify with it, as Deno does with a point off the curve (contract section 3)", async () => {
  vi.spyOn(crypto.subtle, "verify").mockRejectedValueOnce(new TypeError("Invalid key format"));
  expect(await verifyGood()).toEqual({ ok: false, reason: "unknown-key" });
});

describe("a caller's mistake", () => {
  it.each([
    { now: Number.NaN },
    { now: -1 },
    { now: new Date() },
    { clockToleranceSeconds: -1 },
    { clockToleranceSeconds: "60" },
    { maxAgeSeconds: Number.NaN },
    { maxAgeSeconds: undefined },
  ])("a caller's mistake in a number throws a RangeError: %o", async (changes) => {
    await expect(verifyGood(changes)).rejects.toThrow(RangeError);
  });

  it.each([
    ["wrong-badge-number", { badgeNumber: undefined }],
    ["wrong-client-signature", { clientSignature: undefined }],
    ["wrong-audience", { applicationId: undefined }],
    ["unknown-key", { keys: [] }],
    ["unknown-key", { keys: "all" }],
    ["unknown-key", { keys: [null, 7, "key", []] }],
  ])("a caller's mistake is a refusal, and skips no check: %s, %o", async (reason, changes) => {
    expect(await verifyGood(changes)).toEqual({ ok: false, reason });
  });

  it.each(["null", "7", "{}"])("a signature that is no text is malformed, and causes no error: %s", async (json) => {
    const result = await verifyBadgeSignature(JSON.parse(json), expectationsOf(good));
    expect(result).toEqual({ ok: false, reason: "malformed" });
  });

  it("a mistake in one entry of the key set does not affect the others", async () => {
    const keys = [null, 7, "key", [], ...(good.publicKeys?.keys ?? [])];
    expect(await verifyGood({ keys: { keys } })).toMatchObject({ ok: true });
  });
});

it("clocks may differ by 60 seconds by default", async () => {
  const issuedAt = (good.claims?.iat ?? 0) * 1000;
  const { clockToleranceSeconds: _, ...expected } = expectationsOf(good);
  const at = (now: number) => verifyBadgeSignature(good.jwt, { ...expected, now });
  expect(await at(issuedAt - 60_000)).toMatchObject({ ok: true });
  expect(await at(issuedAt - 60_001)).toEqual({ ok: false, reason: "not-yet-valid" });
});
