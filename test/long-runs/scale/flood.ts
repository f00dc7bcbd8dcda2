import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { migrationFiles } from "../../../src/admin/platform/migrations.ts";
import {
  CLIENT_IP_CALLS_PER_MINUTE,
  DEFAULT_NEW_BADGES_PER_HOUR,
  DEFAULT_RANGE_SIZE,
  HOME_WARNING_PERCENT,
  MAX_DATABASE_BYTES,
  MAX_METADATA_CHARACTERS,
  MAX_USER_ID_BYTES,
} from "../../../src/shared/limits.ts";
import { METADATA_FIELDS } from "../../../src/shared/metadata-fields.ts";
import { table } from "../command-line.ts";

/** How long the largest flood of new badges needs, by somebody who has an application ID and nothing else (docs/operations.md). */

/** Our assumption: what one allocator issues in a second when nothing brakes it, from many addresses. */
const UNBRAKED_PER_SECOND = 400;

/** Bytes in D1 of the largest badge with its event, as `measureLargest(20_000)` returns them. */
export const LARGEST_BADGE_BYTES = 10_333;

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
const YEAR = 365 * DAY;

/** A time in its largest unit, rounded: an order of magnitude is what matters. */
export function duration(seconds: number): string {
  const units = [
    [2 * YEAR, YEAR, "years"],
    [2 * DAY, DAY, "days"],
    [2 * HOUR, HOUR, "hours"],
    [0, MINUTE, "minutes"],
  ] as const;
  const [, unit, name] = units.find(([least]) => seconds >= least) ?? units[3];
  return `${Math.max(1, Math.round(seconds / unit))} ${name}`;
}

/** The table of docs/scale.md and docs/operations.md. */
export function floodReport(): string {
  const [warned, full] = [HOME_WARNING_PERCENT / 100, 1].map(
    (share) => (share * MAX_DATABASE_BYTES) / LARGEST_BADGE_BYTES,
  );
  const amounts = {
    ...RANGES,
    [`${HOME_WARNING_PERCENT} % of a home`]: warned ?? 0,
    "a home's 10 GB": full ?? 0,
  };
  const rows = Object.entries(amounts).map(([name, badges]) => [
    name,
    Math.round(badges).toLocaleString("en-US"),
    ...Object.values(RATES).map((perSecond) => duration(badges / perSecond)),
  ]);
  return table(["largest flood of one application", "badges", ...Object.keys(RATES)], rows);
}

const EACH = "WITH RECURSIVE row (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < ?1)";
/** As large as allowed, and different from the first character on, so that no index shares anything. */
const USER_ID = "printf('%08x', n * 2654435761 % 4294967296) || ?2";
const REST_OF_USER_ID = "\u20ac".repeat((MAX_USER_ID_BYTES - 8) / 3);
const METADATA = `json_object(${METADATA_FIELDS.map((field) => `'${field}', printf('%08x', n) || ?3`).join(", ")})`;
/** A quotation mark takes two bytes in JSON. */
const REST_OF_FIELD = '"'.repeat(MAX_METADATA_CHARACTERS - 8);

/** Fills D1's real tables with the largest badges and their events. @returns bytes of one, pages and indexes included */
export function measureLargest(rows: number): number {
  const d1 = new DatabaseSync(":memory:");
  for (const file of migrationFiles()) d1.exec(readFileSync(file, "utf8"));
  const before = sizeOf(d1);
  d1.prepare(
    `${EACH} INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id, ordinal, login_sequence,
       issued_at, change, changed_at)
     SELECT 1000000000 + n * 7919 % 10000000, 'app_7x2m8q4v6w9y3z5a7b1c', hex(randomblob(11)), ${USER_ID}, ${METADATA}, 1,
       'evt_01JD7X2M8Q4V6W' || printf('%012d', n), n, 1, 1763730000000 + n, n, 1763730000000 + n FROM row`,
  ).run(rows, REST_OF_USER_ID, REST_OF_FIELD);
  d1.prepare(
    `${EACH} INSERT INTO webhook_event (application_id, id, event, payload, state, attempts, due_at, created_at)
     SELECT 'app_7x2m8q4v6w9y3z5a7b1c', 'evt_01JD7X2M8Q4V6W' || printf('%012d', n), 'badge:created',
       json_object('id', 'evt_01JD7X2M8Q4V6W000000000000', 'event', 'badge:created', 'createdAt',
         '2026-11-21T18:00:00.000Z', 'data', json_object('id', '1234567890', 'userId', ${USER_ID}, 'metadata', ${METADATA})),
       'pending', 0, 1763730000000 + n, 1763730000000 + n FROM row`,
  ).run(rows, REST_OF_USER_ID, REST_OF_FIELD);
  return Math.round((sizeOf(d1) - before) / rows);
}

function sizeOf(db: DatabaseSync): number {
  const sizes = db.prepare("SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size").get();
  return Number(sizes?.bytes);
}
