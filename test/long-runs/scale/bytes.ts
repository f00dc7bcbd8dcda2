import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { migrationFiles } from "../../../src/admin/platform/migrations.ts";
import type { HeadStatistics } from "../../../src/shared/head-statistics.ts";
import { DEFAULT_RANGE_SIZE } from "../../../src/shared/limits/request-limits.ts";
import { applicationHead } from "../../../src/shared/schema.ts";
import { type NewEvent, NO_CHANGES, type RowWrite, toStored } from "../../../src/worker/allocator/log-entry.ts";

/** Bytes of one row with all its indexes: of D1, then of the allocator. */
type Bytes = Record<"badge" | "event" | "invitation" | "entry" | "ownBadge" | "ownInvitation", number>;

/** As `npm run scale 100000` prints them; test/node/scale.test.ts holds them to a smaller measurement. */
export const BYTES: Bytes = { badge: 573, event: 455, invitation: 419, entry: 1369, ownBadge: 394, ownInvitation: 217 };

const text = (length: number): string => `substr(hex(randomblob(${length})), 1, ${length})`;
const APPLICATION = "'app_7x2m8q4v6w9y3z5a7b1c'";
const METADATA = `'{"deviceModel":"Pixel 9 Pro","os":"Android","osVersion":"16","sdkVersion":"3.2.1"}'`;
const NUMBER = "1000000000 + abs(random() % 10000000)";
const EVENT_ID = "'evt_01JD7X2M8Q4V6W' || printf('%012d', n)";
/** As long as they are. */
const SIGNING_KEY_ID = 7_353_931_268_060_995;
/** Of an application's badges so far. */
const COUNTED = 1_000_000;
const NOW = "1763730000000 + n";

const ALLOCATOR_MIGRATIONS = join(import.meta.dirname, "../../../src/worker/allocator/tables/migrations");

const STATISTICS: HeadStatistics = {
  badges: { active: COUNTED, suspended: 1000, revoked: 1000, replaced: 0, expired: 1000 },
  invitations: { pending: 1000, claimed: 1000, revoked: 1000, expired: 1000 },
  ...{ retired: 1000, freed: 1000, newBadges: { day: 20_414, count: 1000 } },
};

/** A new badge as its entry has it. */
const BADGE_COLUMNS = {
  ...{
    number: 1_004_831_324,
    device: "0".repeat(22),
    userId: "0".repeat(36),
    metadata: JSON.parse(METADATA.slice(1, -1)),
  },
  ...{ signingKeyId: SIGNING_KEY_ID, eventId: "evt_01JD7X2M8Q4V6W000000000000", ordinal: COUNTED, loginSequence: 1 },
  ...{ issuedAt: 1_763_730_000_000, state: "active", change: COUNTED, changedAt: 1_763_730_000_000 },
};

/** What differs between new badges. */
type NewBadge = Pick<typeof BADGE_COLUMNS, "userId" | "metadata">;

function newEvent(badge: NewBadge): NewEvent {
  const { number, userId, metadata, eventId: id, issuedAt: createdAt } = { ...BADGE_COLUMNS, ...badge };
  const data = { id: String(number), userId, metadata };
  return { payload: { id, event: "badge:created", createdAt: new Date(createdAt).toISOString(), data }, createdAt };
}

/** The columns of an entry of new badges, each by a call of its own, and their values. */
function newBadgesEntry(badges: readonly NewBadge[]): Record<string, string | number> {
  const { number, issuedAt: until } = BADGE_COLUMNS;
  const row: RowWrite = {
    ...{ op: "insert", table: "badge", columns: Object.keys(BADGE_COLUMNS) },
    rows: badges.map((badge) => Object.values({ ...BADGE_COLUMNS, ...badge })),
  };
  const changes = toStored({ ...NO_CHANGES, rows: [row], events: badges.map(newEvent) });
  const calls = badges.map(() => ({
    ...{ id: "0".repeat(16), until, result: { kind: "created", number, keyThumbprint: null } },
  }));
  return {
    ...{ id: "0".repeat(16), kept_at: until, latest_at: until, logged_bytes: COUNTED * 1000, epoch: "0".repeat(16) },
    range_segments: JSON.stringify([{ first: 1_000_000_000, size: DEFAULT_RANGE_SIZE, used: COUNTED }]),
    ...{ last_ordinal: COUNTED, last_change: COUNTED, last_signing_key: SIGNING_KEY_ID, hour: 489_925, hour_used: 100 },
    statistics: String(applicationHead.statistics.mapToDriverValue(STATISTICS)),
    ...{ changes: JSON.stringify(changes), calls: JSON.stringify(calls) },
  };
}

/** What differs between badges of different sizes: two expressions of SQL, and the calls of an entry. */
export interface Size {
  userId: string;
  metadata: string;
  calls: readonly NewBadge[];
}

/** User IDs as long as a UUID. */
const USUAL_SIZE: Size = { userId: text(36), metadata: METADATA, calls: [BADGE_COLUMNS] };

/** Rows as the service writes them: random numbers of a default range, delivered events. */
function insertsOf({ userId, metadata, calls }: Size): Record<keyof Bytes, string> {
  const entry = newBadgesEntry(calls);
  return {
    badge: `INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id, ordinal, login_sequence,
      issued_at, change, changed_at)
    SELECT ${NUMBER}, ${APPLICATION}, ${text(22)}, ${userId}, ${metadata}, 1, ${EVENT_ID}, n, 1, ${NOW}, n, ${NOW}`,
    event: `INTO webhook_event (application_id, id, event, payload, state, attempts, due_at, last_status, last_outcome,
      last_response, last_milliseconds, created_at, delivered_at)
    SELECT ${APPLICATION}, ${EVENT_ID}, 'badge:created', json_object('id', ${EVENT_ID}, 'event', 'badge:created',
      'createdAt', '2026-11-21T18:00:00.000Z', 'data', json_object('id', '1234567890', 'userId', ${userId}, 'metadata',
      json(${metadata}))), 'delivered', 1, 0, 204, 'answered', '', 120, ${NOW}, ${NOW}`,
    invitation: `INTO invitation (digest, application_id, number, state, creator_device, expires_at, expires_at_time,
      created_at)
    SELECT ${text(43)}, ${APPLICATION}, ${NUMBER}, 'pending', ${text(22)}, '2026-11-21T18:00:00.000Z', ${NOW}, ${NOW}`,
    entry: `INTO entry (sequence, ${Object.keys(entry).join()})
    SELECT n, ${Object.values(entry).map((value) => `'${value}'`)}`,
    ownBadge: `INTO badge (number, device, user_id, metadata, signing_key_id, event_id, ordinal, login_sequence, issued_at, change, changed_at)
    SELECT ${NUMBER}, ${text(22)}, ${userId}, ${metadata}, 1, ${EVENT_ID}, n, 1, ${NOW}, n, ${NOW}`,
    ownInvitation: `INTO invitation (digest, number, state, creator_device, expires_at, expires_at_time, created_at)
    SELECT ${text(43)}, ${NUMBER}, 'pending', ${text(22)}, '2026-11-21T18:00:00.000Z', ${NOW}, ${NOW}`,
  };
}

/** D1's real tables. */
function emptyD1(): DatabaseSync {
  const d1 = new DatabaseSync(":memory:");
  for (const file of migrationFiles()) d1.exec(readFileSync(file, "utf8"));
  return d1;
}

/** An allocator's. */
function emptyAllocator(): DatabaseSync {
  const allocator = new DatabaseSync(":memory:");
  for (const file of readdirSync(ALLOCATOR_MIGRATIONS)
    .filter((name) => name.endsWith(".sql"))
    .toSorted()) {
    allocator.exec(readFileSync(join(ALLOCATOR_MIGRATIONS, file), "utf8"));
  }
  return allocator;
}

/** Fills the real tables and divides what SQLite then occupies, pages with their room included, by the rows, or calls of an entry. */
export function measureBytes(rows: number, size = USUAL_SIZE): Bytes {
  const [d1, allocator] = [emptyD1(), emptyAllocator()];
  const inserts = insertsOf(size);
  const bytesOf = (kind: keyof Bytes, db: DatabaseSync, calls = 1): number => {
    const before = sizeOf(db);
    const each = `WITH RECURSIVE row (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < ${rows / calls})`;
    const { changes } = db.prepare(`${each} INSERT OR IGNORE ${inserts[kind]} FROM row`).run();
    return Math.round((sizeOf(db) - before) / Number(changes) / calls);
  };
  const ofD1 = { badge: bytesOf("badge", d1), event: bytesOf("event", d1), invitation: bytesOf("invitation", d1) };
  const own = { ownBadge: bytesOf("ownBadge", allocator), ownInvitation: bytesOf("ownInvitation", allocator) };
  return { ...ofD1, entry: bytesOf("entry", allocator, size.calls.length), ...own };
}

function sizeOf(db: DatabaseSync): number {
  const sizes = db.prepare("SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size").get();
  return Number(sizes?.bytes);
}
