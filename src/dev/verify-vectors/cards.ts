import type { CardFormat, RefusedCard } from "../../verify/index.ts";

/** Card formats (contract section 20). The frames are published examples or worked out on paper, not with the code. */

/** A badge number and its card. */
interface CardVector {
  format: CardFormat;
  badgeNumber: string;
  /** Null if the format has none. */
  siteCode: number | null;
  cardNumber: number;
  bits: string;
  /** The bits as one number. */
  hex: string;
}

/** A frame that no badge has. */
interface RefusedCardVector {
  format: CardFormat;
  name: string;
  bits: string;
  expected: RefusedCard["reason"];
}

/** A badge number that has no card of this format. */
interface UnfitNumberVector {
  format: CardFormat;
  badgeNumber: string;
}

const WIDTHS: Record<CardFormat, number> = {
  h10301: 26,
  h10302: 37,
  h10304: 37,
  corporate1000: 35,
  corporate1000_48: 48,
};

/** Examples from other people's tools, and for each format the smallest and the largest number. */
const CARDS: readonly CardVector[] = [
  card("h10301", "2031953", 31, 337, "23E02A3"),
  card("h10301", "8065495", 123, 4567, "2F623AE"),
  card("h10301", "1", 0, 1, "0000002"),
  card("h10301", "16777215", 255, 65_535, "1FFFFFF"),
  card("h10302", "11850046624", null, 11_850_046_624, "0584A2B940"),
  card("h10302", "1", null, 1, "0000000002"),
  card("h10302", "34359738367", null, 34_359_738_367, "0FFFFFFFFF"),
  card("h10304", "11850046624", 22_602, 89_248, "0584A2B940"),
  card("h10304", "1", 0, 1, "0000000002"),
  card("h10304", "34359738367", 65_535, 524_287, "0FFFFFFFFF"),
  card("corporate1000", "1401948249", 1337, 2137, "4A72010B3"),
  card("corporate1000", "2771549639", 2643, 163_271, "54A64FB8E"),
  card("corporate1000", "1", 0, 1, "600000002"),
  card("corporate1000", "4294967295", 4095, 1_048_575, "5FFFFFFFE"),
  card("corporate1000_48", "352900392021", 42_069, 42_069, "00A4550148AB"),
  card("corporate1000_48", "1", 0, 1, "400000000003"),
  card("corporate1000_48", "35184372088831", 4_194_303, 8_388_607, "BFFFFFFFFFFF"),
];

/** Good parity, and card number 0. */
const CARD_NUMBER_ZERO: Record<CardFormat, string> = {
  h10301: "2020001",
  h10302: "0000000001",
  h10304: "1000100001",
  corporate1000: "000200000",
  corporate1000_48: "000001000000",
};

/** One more than the largest, and the first number of site code 1 or of none, which is card number 0. */
const TOO_LARGE: Record<CardFormat, readonly string[]> = {
  h10301: ["16777216", "65536", "1000000000"],
  h10302: ["34359738368"],
  h10304: ["34359738368", "524288"],
  corporate1000: ["4294967296", "1048576"],
  corporate1000_48: ["35184372088832", "8388608"],
};
const NO_BADGE_NUMBERS = [
  "0",
  "-1",
  "01",
  " 1",
  "1\n",
  "1.5",
  "1.0",
  "1e3",
  "0x10",
  "+1",
  "",
  "\u0661",
  "9007199254740993",
];

export function cardVectors(): {
  cards: readonly CardVector[];
  refusedCards: RefusedCardVector[];
  unfitNumbers: UnfitNumberVector[];
} {
  const formats = CARDS.map(({ format }) => format).filter((format, index, all) => all.indexOf(format) === index);
  return {
    cards: CARDS,
    refusedCards: formats.flatMap(refusedCards),
    unfitNumbers: formats.flatMap((format) =>
      [...TOO_LARGE[format], ...NO_BADGE_NUMBERS].map((badgeNumber) => ({ format, badgeNumber })),
    ),
  };
}

function refusedCards(format: CardFormat): RefusedCardVector[] {
  const { bits = "" } = CARDS.find((each) => each.format === format) ?? {};
  const refused = (expected: RefusedCard["reason"], name: string, frame: string) => ({
    format,
    name,
    bits: frame,
    expected,
  });
  const lengths = {
    "no bits": "",
    "a bit less": bits.slice(1),
    "a bit more": `${bits}0`,
    "a line feed after it": `${bits}\n`,
    "a line feed for its last bit": `${bits.slice(0, -1)}\n`,
    "a 2 among them": `2${bits.slice(1)}`,
    "a digit outside ASCII": `${bits.slice(0, -1)}\u0661`,
  };
  return [
    ...Object.entries(lengths).map(([name, frame]) => refused("wrong-length", name, frame)),
    ...[...bits].map((bit, index) =>
      refused(
        "wrong-parity",
        `bit ${index + 1} changed`,
        `${bits.slice(0, index)}${bit === "1" ? "0" : "1"}${bits.slice(index + 1)}`,
      ),
    ),
    refused("unused-number", "card number 0", frameOf(format, CARD_NUMBER_ZERO[format])),
  ];
}

function card(
  format: CardFormat,
  badgeNumber: string,
  siteCode: number | null,
  cardNumber: number,
  hex: string,
): CardVector {
  return { format, badgeNumber, siteCode, cardNumber, bits: frameOf(format, hex), hex };
}

function frameOf(format: CardFormat, hex: string): string {
  return BigInt(`0x${hex}`).toString(2).padStart(WIDTHS[format], "0");
}
