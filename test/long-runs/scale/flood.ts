import type { DatabaseSync } from "node:sqlite";
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
import { emptyAllocator, emptyD1, newBadgesEntry, sizeOf } from "./bytes.ts";

/** How long the largest flood of new badges needs, by somebody who has an application ID and nothing else (docs/operations.md). */

/** Our assumption: what one allocator issues in a second when nothing brakes it, from many addresses. */
const UNBRAKED_PER_SECOND = 400;

/**
 * Bytes of the largest badge with its indexes, as `measureLargest(20_000)` returns them: in D1, with its event there, and in the
 * allocator, with its share of an entry of the log.
 */
export const LARGEST = { badge: 5582, event: 4757, ownBadge: 5488, entry: 5670 };

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

const APPLICATION = "'app_7x2m8q4v6w9y3z5a7b1c'";
const EACH = "WITH RECURSIVE row (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < ?1)";
/** As large as allowed, and different from the first character on, so that no index shares anything. */
const USER_ID = "printf('%08x', n * 2654435761 % 4294967296) || ?2";
const REST_OF_USER_ID = "\u20ac".repeat((MAX_USER_ID_BYTES - 8) / 3);
const METADATA = `json_object(${METADATA_FIELDS.map((field) => `'${field}', printf('%08x', n) || ?3`).join(", ")})`;
/** A quotation mark takes two bytes in JSON. */
const REST_OF_FIELD = '"'.repeat(MAX_METADATA_CHARACTERS - 8);

/** Fills the real tables with the largest badges, their events and their entries. @returns bytes of one, pages and indexes included */
export function measureLargest(rows: number): typeof LARGEST {
  const [d1, allocator] = [emptyD1(), emptyAllocator()];
  const bytesOf = (db: DatabaseSync, fill: () => void): number => {
    const before = sizeOf(db);
    fill();
    return Math.round((sizeOf(db) - before) / rows);
  };
  const insert = (db: DatabaseSync, into: string) =>
    bytesOf(db, () => void db.prepare(`${EACH} INSERT ${into} FROM row`).run(rows, REST_OF_USER_ID, REST_OF_FIELD));
  const badge = (columns: string, values: string) =>
    `INTO badge (number, ${columns} device, user_id, metadata, signing_key_id, event_id, ordinal, login_sequence, issued_at, change, changed_at)
     SELECT 1000000000 + n * 7919 % 10000000, ${values} hex(randomblob(11)), ${USER_ID}, ${METADATA}, 1,
       'evt_01JD7X2M8Q4V6W' || printf('%012d', n), n, 1, 1763730000000 + n, n, 1763730000000 + n`;
  return {
    badge: insert(d1, badge("application_id,", `${APPLICATION},`)),
    event: insert(
      d1,
      `INTO webhook_event (application_id, id, event, payload, state, attempts, due_at, created_at)
       SELECT ${APPLICATION}, 'evt_01JD7X2M8Q4V6W' || printf('%012d', n), 'badge:created',
         json_object('id', 'evt_01JD7X2M8Q4V6W000000000000', 'event', 'badge:created', 'createdAt',
           '2026-11-21T18:00:00.000Z', 'data', json_object('id', '1234567890', 'userId', ${USER_ID}, 'metadata', ${METADATA})),
         'pending', 0, 1763730000000 + n, 1763730000000 + n`,
    ),
    ownBadge: insert(allocator, badge("", "")),
    entry: bytesOf(allocator, () => fillLog(allocator, Math.round(rows / CALLS_IN_AN_ENTRY))),
  };
}

/** Entries of the largest badges: a quotation mark takes two bytes in the row and in the event. */
function fillLog(allocator: DatabaseSync, entries: number): void {
  const fields = METADATA_FIELDS.map((field) => [field, `00000000${REST_OF_FIELD}`]);
  const badge = { userId: `00000000${REST_OF_USER_ID}`, metadata: Object.fromEntries(fields) };
  const row = newBadgesEntry(Array.from({ length: CALLS_IN_AN_ENTRY }, () => badge));
  const names = Object.keys(row);
  const insert = allocator.prepare(`INSERT INTO entry (sequence, ${names}) VALUES (?, ${names.map(() => "?")})`);
  for (let sequence = 1; sequence <= entries; sequence++) insert.run(sequence, ...Object.values(row));
}
