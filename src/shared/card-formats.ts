/**
 * Card formats: the bits of a badge number on a Wiegand or OSDP line from reader to controller (contract section 20).
 * The badge number is the concatenation of site code and card number, so it is one card in each format that it fits.
 */

/** Bits are counted from 1, the first bit sent; ranges include both ends. */
interface CardLayout {
  bits: number;
  /** The facility or company code; null if the format has none. */
  siteCode: BitRange | null;
  cardNumber: BitRange;
  /** In this order: a later parity bit may cover an earlier one. */
  parity: readonly ParityBit[];
}

type BitRange = readonly [first: number, last: number];

interface ParityBit {
  bit: number;
  /** Whether the number of ones, this bit included, is even or odd. */
  kind: "even" | "odd";
  covers: readonly number[];
}

const even = (bit: number, covers: readonly number[]): ParityBit => ({ bit, kind: "even", covers });
const odd = (bit: number, covers: readonly number[]): ParityBit => ({ bit, kind: "odd", covers });

/** Every bit from the first to the last. */
const span = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, offset) => first + offset);
/** Two bits of three, from the first to the last: 3, 4, 6, 7, and so on. */
const twoOfThree = (first: number, last: number): number[] =>
  span(first, last).filter((bit) => (bit - first) % 3 !== 2);

/** H10302 and H10304 have the same frame and read it differently. */
const H1030X_PARITY = [even(1, span(2, 19)), odd(37, span(19, 36))];

const LAYOUTS = {
  h10301: {
    bits: 26,
    siteCode: [2, 9],
    cardNumber: [10, 25],
    parity: [even(1, span(2, 13)), odd(26, span(14, 25))],
  },
  h10302: { bits: 37, siteCode: null, cardNumber: [2, 36], parity: H1030X_PARITY },
  h10304: { bits: 37, siteCode: [2, 17], cardNumber: [18, 36], parity: H1030X_PARITY },
  corporate1000: {
    bits: 35,
    siteCode: [3, 14],
    cardNumber: [15, 34],
    parity: [even(2, twoOfThree(3, 34)), odd(35, twoOfThree(2, 33)), odd(1, span(2, 35))],
  },
  /** The longer Corporate 1000; no preset chooses a range for it. */
  corporate1000_48: {
    bits: 48,
    siteCode: [3, 24],
    cardNumber: [25, 47],
    parity: [even(2, twoOfThree(4, 47)), odd(48, twoOfThree(3, 46)), odd(1, span(2, 48))],
  },
} as const satisfies Record<string, CardLayout>;

export type CardFormat = keyof typeof LAYOUTS;

export const CARD_FORMATS: readonly CardFormat[] = ["h10301", "h10302", "h10304", "corporate1000", "corporate1000_48"];

/** The parts of a badge number on a card. */
export interface CardNumber {
  /** Facility or company code; null if the format has none. */
  siteCode: number | null;
  /** From 1: a badge number never has card number 0. */
  cardNumber: number;
}

/** What a reader sent. */
export interface DecodedCard extends CardNumber {
  ok: true;
  badgeNumber: string;
}

/**
 * - `wrong-length`: the text has not exactly the format's number of `0` and `1`
 * - `wrong-parity`: a bit was lost on the line, or the card has another format
 * - `unused-number`: card number 0, which no badge has
 */
export interface RefusedCard {
  ok: false;
  reason: "wrong-length" | "wrong-parity" | "unused-number";
}

/**
 * The bits of a badge number's card, as text of `0` and `1`, the first bit first.
 *
 * @param badgeNumber as the service writes it, or as a number
 * @returns null if the number does not fit the format
 */
export function encodeCard(format: CardFormat, badgeNumber: string | number): string | null {
  const parts = splitBadgeNumber(format, badgeNumber);
  if (parts === null) return null;
  const { bits, siteCode, cardNumber, parity }: CardLayout = LAYOUTS[format];
  const frame = new Array<string>(bits).fill("0");
  if (siteCode !== null) writeNumber(frame, siteCode, parts.siteCode ?? 0);
  writeNumber(frame, cardNumber, parts.cardNumber);
  for (const each of parity) frame[each.bit - 1] = parityOf(frame, each);
  return frame.join("");
}

/** Reads the bits of a card, text of `0` and `1`, the first bit first. */
export function decodeCard(format: CardFormat, bits: string): DecodedCard | RefusedCard {
  const { siteCode, cardNumber, parity, ...layout }: CardLayout = LAYOUTS[format];
  if (bits.length !== layout.bits || !/^[01]*$/.test(bits)) return { ok: false, reason: "wrong-length" };
  const frame = [...bits];
  if (parity.some((each) => frame[each.bit - 1] !== parityOf(frame, each)))
    return { ok: false, reason: "wrong-parity" };
  const parts = {
    siteCode: siteCode === null ? null : readNumber(frame, siteCode),
    cardNumber: readNumber(frame, cardNumber),
  };
  if (parts.cardNumber === 0) return { ok: false, reason: "unused-number" };
  return { ok: true, badgeNumber: String((parts.siteCode ?? 0) * sizeOf(cardNumber) + parts.cardNumber), ...parts };
}

/** Site code and card number of a badge number; null if it does not fit the format. */
export function splitBadgeNumber(format: CardFormat, badgeNumber: string | number): CardNumber | null {
  // Accepts only the service's own text of a number: Number("") is 0, and Number(" 7") is 7.
  const number = Number(badgeNumber);
  if (String(number) !== String(badgeNumber)) return null;
  const { siteCode, cardNumber }: CardLayout = LAYOUTS[format];
  const cards = sizeOf(cardNumber);
  const sites = siteCode === null ? 1 : sizeOf(siteCode);
  if (!Number.isSafeInteger(number) || number < 1 || number >= sites * cards || number % cards === 0) return null;
  return { siteCode: siteCode === null ? null : Math.floor(number / cards), cardNumber: number % cards };
}

/**
 * The badge numbers of a site code, first and last included.
 *
 * @param siteCode null for a format that has none
 * @returns null if the format has no such site code
 */
export function cardNumberRange(
  format: CardFormat,
  siteCode: number | null,
): { firstNumber: number; lastNumber: number } | null {
  const most = maxSiteCode(format);
  if ((siteCode === null) !== (most === null)) return null;
  const site = siteCode ?? 0;
  if (!Number.isSafeInteger(site) || site < 0 || site > (most ?? 0)) return null;
  const cards = sizeOf(LAYOUTS[format].cardNumber);
  return { firstNumber: site * cards + 1, lastNumber: site * cards + cards - 1 };
}

/** The highest facility or company code; null if the format has none. */
export function maxSiteCode(format: CardFormat): number | null {
  const { siteCode }: CardLayout = LAYOUTS[format];
  return siteCode === null ? null : sizeOf(siteCode) - 1;
}

/** The bits as one number in hexadecimal, as controllers and card printers show them. */
export function cardHex(bits: string): string {
  return BigInt(`0b${bits}`)
    .toString(16)
    .toUpperCase()
    .padStart(Math.ceil(bits.length / 4), "0");
}

/** The number of values of a field. */
function sizeOf([first, last]: BitRange): number {
  return 2 ** (last - first + 1);
}

function writeNumber(frame: string[], [first, last]: BitRange, value: number): void {
  const width = last - first + 1;
  frame.splice(first - 1, width, ...value.toString(2).padStart(width, "0"));
}

function readNumber(frame: readonly string[], [first, last]: BitRange): number {
  return Number.parseInt(frame.slice(first - 1, last).join(""), 2);
}

function parityOf(frame: readonly string[], { kind, covers }: ParityBit): string {
  const ones = covers.filter((bit) => frame[bit - 1] === "1").length;
  return String((ones + (kind === "odd" ? 1 : 0)) % 2);
}
