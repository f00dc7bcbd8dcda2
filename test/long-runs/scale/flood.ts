import { MAX_LOG_BYTES } from "../../../src/shared/limits/allocator-limits.ts";
import { HOME_WARNING_PERCENT, MAX_DATABASE_BYTES } from "../../../src/shared/limits/platform-limits.ts";
import {
  CLIENT_IP_CALLS_PER_MINUTE,
  DEFAULT_NEW_BADGES_PER_HOUR,
  DEFAULT_RANGE_SIZE,
  MAX_METADATA_CHARACTERS,
  MAX_USER_ID_BYTES,
} from "../../../src/shared/limits/request-limits.ts";
import { METADATA_FIELDS } from "../../../src/shared/metadata-fields.ts";
import { table } from "../command-line.ts";
import { measureBytes, type Size } from "./bytes.ts";

/** How long the largest flood of new badges needs, by somebody who has an application ID and nothing else (docs/operations.md). */

/** Our assumption: what one allocator issues in a second when nothing brakes it, from many addresses. */
const UNBRAKED_PER_SECOND = 400;

/**
 * Bytes of the largest badge with its indexes, as `npm run scale 20000` prints them: in D1, with its event there, and in the
 * allocator, with its share of an entry of the log.
 */
export const LARGEST = { badge: 5569, event: 4681, ownBadge: 5485, entry: 5672 };

/** How many calls of a flood came together on a running service (docs/scale.md). */
const CALLS_IN_AN_ENTRY = 13;

/** Fresh numbers in a second, by what bounds them. */
const RATES = {
  [`default, ${DEFAULT_NEW_BADGES_PER_HOUR.toLocaleString("en-US")} an hour`]: DEFAULT_NEW_BADGES_PER_HOUR / 3600,
  "none, one address": CLIENT_IP_CALLS_PER_MINUTE / 60,
  "none, many addresses": UNBRAKED_PER_SECOND,
};

/** Numbers of a range, by the format of the card (contract section 20). */
const RANGES = {
  "range of h10301": 65_535,
  "range of h10304": 524_287,
  "range of corporate1000": 1_048_575,
  "default range": DEFAULT_RANGE_SIZE,
};

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A time in its largest unit, rounded: an order of magnitude is what matters. */
function duration(seconds: number): string {
  const units = [
    [2 * DAY, DAY, "days"],
    [2 * HOUR, HOUR, "hours"],
    [0, MINUTE, "minutes"],
  ] as const;
  const [, unit, name] = units.find(([least]) => seconds >= least) ?? units[2];
  return `${Math.max(1, Math.round(seconds / unit))} ${name}`;
}

/** The table of docs/scale.md and docs/operations.md. */
export function floodReport(): string {
  const inD1 = LARGEST.badge + LARGEST.event;
  const amounts = {
    ...RANGES,
    "4 GB of its log": MAX_LOG_BYTES / LARGEST.entry,
    [`${HOME_WARNING_PERCENT} % of a home`]: ((HOME_WARNING_PERCENT / 100) * MAX_DATABASE_BYTES) / inD1,
    "a home's 10 GB": MAX_DATABASE_BYTES / inD1,
  };
  const rows = Object.entries(amounts).map(([name, badges]) => [
    name,
    Math.round(badges).toLocaleString("en-US"),
    ...Object.values(RATES).map((perSecond) => duration(badges / perSecond)),
  ]);
  return table(["largest flood of one application", "badges", ...Object.keys(RATES)], rows);
}

/** As long as allowed, and different from the first character on, so that no index shares anything. */
const USER_ID = "\u20ac".repeat((MAX_USER_ID_BYTES - 8) / 3);
/** A quotation mark takes two bytes in JSON. */
const FIELD = '"'.repeat(MAX_METADATA_CHARACTERS - 8);
const BADGE = {
  userId: `00000000${USER_ID}`,
  metadata: Object.fromEntries(METADATA_FIELDS.map((field) => [field, `00000000${FIELD}`])),
};
const SIZE: Size = {
  userId: `printf('%08x', n * 2654435761 % 4294967296) || '${USER_ID}'`,
  metadata: `json_object(${METADATA_FIELDS.map((field) => `'${field}', printf('%08x', n) || '${FIELD}'`)})`,
  calls: Array.from({ length: CALLS_IN_AN_ENTRY }, () => BADGE),
};

export const measureLargest = (rows: number) => measureBytes(rows, SIZE);
