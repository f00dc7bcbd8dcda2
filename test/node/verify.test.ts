import { describe, expect, it } from "vitest";
import { verifyBadgeSignature } from "../../src/verify/badge-signature.ts";
import { decodeBase64Url } from "../../src/verify/encoding.ts";
import { byEffort } from "../support/effort.ts";
import { fc } from "../support/random.ts";
import { expectationsOf, GOOD } from "../verify/vectors.ts";

describe("any input (contract section 3)", () => {
  it("any changed byte of a good JWT is refused", async () => {
    const change = fc.record({
      vector: fc.constantFrom(...GOOD),
      position: fc.nat({ max: 10_000 }),
      mask: fc.integer({ min: 1, max: 255 }),
    });
    await fc.assert(
      fc.asyncProperty(change, async ({ vector, position, mask }) => {
        const bytes = Buffer.from(vector.jwt, "latin1");
        const index = position % bytes.length;
        bytes.writeUInt8(bytes.readUInt8(index) ^ mask, index);
        const result = await verifyBadgeSignature(bytes.toString("latin1"), expectationsOf(vector));
        expect(result.ok).toBe(false);
      }),
      { numRuns: byEffort(300, 20_000) },
    );
  });

  it("base64url is accepted only in its canonical form", () => {
    const text = fc.oneof(fc.base64String(), fc.string({ unit: fc.constantFrom(..."AQgwZ_-+/= \n") }));
    fc.assert(
      fc.property(text, (candidate) => {
        const bytes = Buffer.from(candidate, "base64url");
        const expected = bytes.toString("base64url") === candidate ? [...bytes] : null;
        const decoded = decodeBase64Url(candidate);
        expect(decoded === null ? null : [...decoded]).toEqual(expected);
      }),
      { numRuns: byEffort(300, 10_000) },
    );
  });
});
