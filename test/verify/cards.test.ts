import { describe, expect, it } from "vitest";
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

  it("there is no card for a number that does not fit", async () => {
    await expectEach(UNFIT_NUMBERS, ({ format, badgeNumber }) => `${format} ${JSON.stringify(badgeNumber)}`, {
      actual: ({ format, badgeNumber }) => [encodeCard(format, badgeNumber), splitBadgeNumber(format, badgeNumber)],
      expected: () => [null, null],
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
