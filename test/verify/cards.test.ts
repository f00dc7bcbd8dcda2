import { describe, expect, it } from "vitest";
import { cardNumberRange } from "../../src/shared/card-formats.ts";
import { CARD_FORMATS, cardHex, decodeCard, encodeCard, splitBadgeNumber } from "../../src/verify/index.ts";
import { byEffort } from "../support/effort.ts";
import { fc } from "../support/random.ts";
import { expectEach } from "./each-case.ts";
import { CARDS, REFUSED_CARDS, UNFIT_NUMBERS } from "./vectors.ts";

describe("the card of a badge number (contract section 20)", () => {
  it("a badge number's card is the one of the published vectors, there and back", async () => {
    await expectEach(CARDS, ({ format, badgeNumber }) => `${format} ${badgeNumber}`, {
      actual: ({ format, badgeNumber, bits }) => ({
        encoded: [encodeCard(format, badgeNumber), encodeCard(format, Number(badgeNumber))],
        hex: cardHex(bits),
        split: splitBadgeNumber(format, badgeNumber),
        decoded: decodeCard(format, bits),
      }),
      expected: ({ badgeNumber, siteCode, cardNumber, bits, hex }) => ({
        encoded: [bits, bits],
        hex,
        split: { siteCode, cardNumber },
        decoded: { ok: true, badgeNumber, siteCode, cardNumber },
      }),
    });
  });

  it("31/337 in H10301 is the published frame", () => {
    expect(encodeCard("h10301", 31 * 65_536 + 337)).toBe("10001111100000001010100011");
  });

  it("there is no card for a number that does not fit", async () => {
    await expectEach(UNFIT_NUMBERS, ({ format, badgeNumber }) => `${format} ${JSON.stringify(badgeNumber)}`, {
      actual: ({ format, badgeNumber }) => encodeCard(format, badgeNumber),
      expected: () => null,
    });
  });

  it("a card is refused as the vectors say when a bit is wrong or missing", async () => {
    await expectEach(REFUSED_CARDS, ({ format, name }) => `${format}: ${name}`, {
      actual: ({ format, bits }) => decodeCard(format, bits),
      expected: ({ expected }) => ({ ok: false, reason: expected }),
    });
  });

  it("a card decodes to the number it was encoded from, in every format that the number fits", () => {
    const number = fc.oneof(fc.maxSafeNat(), fc.nat({ max: 2 ** 24 }), fc.nat({ max: 2 ** 31 - 1 }));
    fc.assert(
      fc.property(fc.constantFrom(...CARD_FORMATS), number, (format, badgeNumber) => {
        const bits = encodeCard(format, badgeNumber);
        if (bits === null) return;
        expect(decodeCard(format, bits)).toMatchObject({ ok: true, badgeNumber: String(badgeNumber) });
      }),
      { numRuns: byEffort(2000, 50_000) },
    );
  });
});

describe("the badge numbers of a site code (contract section 20)", () => {
  it.each([
    ["h10301", 123, 8_060_929, 8_126_463],
    ["h10301", 0, 1, 65_535],
    ["h10302", null, 1, 34_359_738_367],
    ["h10304", 65_535, 34_359_214_081, 34_359_738_367],
    ["corporate1000", 4095, 4_293_918_721, 4_294_967_295],
  ] as const)("%s %s are %s to %s", (format, siteCode, firstNumber, lastNumber) => {
    expect(cardNumberRange(format, siteCode)).toEqual({ firstNumber, lastNumber });
    for (const number of [firstNumber, lastNumber]) expect(splitBadgeNumber(format, number)?.siteCode).toBe(siteCode);
    expect(splitBadgeNumber(format, firstNumber - 1)).toBeNull();
    expect(splitBadgeNumber(format, lastNumber + 1)).toBeNull();
  });

  it.each([
    ["h10301", 256],
    ["h10301", -1],
    ["h10301", 1.5],
    ["h10301", null],
    ["h10302", 0],
    ["h10304", 65_536],
    ["corporate1000", 4096],
  ] as const)("%s has no site code %s", (format, siteCode) => {
    expect(cardNumberRange(format, siteCode)).toBeNull();
  });
});
