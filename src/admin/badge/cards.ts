import { CARD_FORMATS, type CardFormat, cardHex, encodeCard, splitBadgeNumber } from "../../shared/card-formats.ts";
import { bold } from "../command-line/output.ts";

/** A badge number as the card of one format. */
export interface ShownCard {
  format: CardFormat;
  /** Facility or company code; null if the format has none. */
  siteCode: number | null;
  cardNumber: number;
  /** Text of `0` and `1`, parity included, the first bit first. */
  bits: string;
  hex: string;
}

/** The cards of a badge number, in the formats that it fits. */
export function cardsOf(number: number): ShownCard[] {
  return CARD_FORMATS.flatMap((format) => {
    const bits = encodeCard(format, number);
    const parts = splitBadgeNumber(format, number);
    return bits === null || parts === null ? [] : [{ format, ...parts, bits, hex: cardHex(bits) }];
  });
}

export function cardText(cards: readonly ShownCard[]): string {
  if (cards.length === 0) return "The number fits no card format.";
  const lines = cards.map(({ format, siteCode, cardNumber, bits, hex }) => {
    const site = siteCode === null ? "" : `site code ${siteCode}, `;
    return `  ${format}, ${bits.length} bits: ${site}card number ${cardNumber}\n    ${hex}  ${bits}`;
  });
  return [bold("On a card:"), ...lines].join("\n");
}
