import {
  CARD_FORMATS,
  type CardFormat,
  cardNumberRange,
  maxSiteCode,
  splitBadgeNumber,
} from "../../shared/card-formats.ts";
import type { NumberRange } from "../../shared/number-range.ts";
import { badgeNumber, wholeNumber } from "../command-line/arguments.ts";
import { choice, type OptionValues, option } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { formatRange, rangeOf } from "./range.ts";

/** The card formats that can choose a range (contract section 20), and the option that each needs. */
const SITE_OPTIONS = { h10301: "facility", h10302: null, h10304: "facility", corporate1000: "company" } as const;

type PresetFormat = keyof typeof SITE_OPTIONS;

const PRESET_FORMATS = CARD_FORMATS.filter((format): format is PresetFormat => format in SITE_OPTIONS);

export const RANGE_OPTIONS = {
  first: option("--first <n>", "first badge number of the range", badgeNumber),
  last: option("--last <n>", "last badge number of the range", badgeNumber),
  format: choice("--format <format>", "choose numbers that fit this card format", PRESET_FORMATS),
  facility: option("--facility <code>", "facility code, for h10301 and h10304", wholeNumber(0)),
  company: option("--company <code>", "company code, for corporate1000", wholeNumber(0)),
};

export type RangeOptions = Partial<OptionValues<typeof RANGE_OPTIONS>>;

/** The numbers that a new application will get. */
export interface WantedNumbers {
  /** Undefined for the lowest free block of the default size. */
  range?: NumberRange | undefined;
}

/** @throws UserError when the options do not go together, or a number is outside the format */
export function wantedNumbers(options: RangeOptions): WantedNumbers {
  const { format, first, last } = options;
  const siteCode = siteCodeOf(options);
  const fitting = format && cardNumberRange(format, siteCode);
  if (!fitting) return { range: explicitEnds(first, last) };
  const within = rangeOf(fitting);
  // Without a site code, the whole format would belong to one application: the default block is enough.
  const narrowed = { first: first ?? within.first, last: last ?? within.last };
  const range = siteCode === null ? explicitEnds(first, last) : narrowed;
  if (range === undefined) return {};
  if ([range.first, range.last].some((end) => end < within.first || end > within.last)) {
    const site = siteCode === null ? "" : ` of ${SITE_OPTIONS[format]} ${siteCode}`;
    throw new UserError(
      `Numbers ${formatRange(range)} are not all in ${format}${site}, which has ${formatRange(within)}.`,
    );
  }
  assertOrder(range);
  return { range };
}

/** The facility or company code; null if the format has none. */
function siteCodeOf(options: RangeOptions): number | null {
  const { format } = options;
  const needed = format === undefined ? null : SITE_OPTIONS[format];
  for (const option of ["facility", "company"] as const) {
    if (options[option] !== undefined && option !== needed) throw new UserError(superfluousLine(option, format));
  }
  if (format === undefined || needed === null) return null;
  const siteCode = options[needed];
  const most = maxSiteCode(format);
  if (siteCode === undefined) throw new UserError(`${format} needs --${needed}, from 0 to ${most}.`);
  if (most === null || siteCode > most) {
    throw new UserError(`${format} has no ${needed} ${siteCode}: give --${needed} from 0 to ${most}.`);
  }
  return siteCode;
}

function superfluousLine(option: "facility" | "company", format: PresetFormat | undefined): string {
  const formats = PRESET_FORMATS.filter((each) => SITE_OPTIONS[each] === option).join(" or ");
  return format === undefined
    ? `--${option} needs a card format: add --format ${formats}.`
    : `${format} has no ${option} code: leave out --${option}, or choose --format ${formats}.`;
}

/** The range of --first and --last; undefined when neither was given. */
function explicitEnds(first: number | undefined, last: number | undefined): NumberRange | undefined {
  if (first === undefined && last === undefined) return undefined;
  if (first === undefined || last === undefined) {
    throw new UserError("A range needs both ends: give --first and --last, or neither for the next free block.");
  }
  assertOrder({ first, last });
  return { first, last };
}

function assertOrder({ first, last }: NumberRange): void {
  if (first > last) throw new UserError(`--first ${first} is above --last ${last}: swap them.`);
}

/** The formats that a whole range fits with one facility or company code, because a controller is set to one. */
export function formatsOfRange(range: NumberRange): CardFormat[] {
  return CARD_FORMATS.filter((format) => {
    const first = splitBadgeNumber(format, range.first);
    const last = splitBadgeNumber(format, range.last);
    return first !== null && last !== null && first.siteCode === last.siteCode;
  });
}
