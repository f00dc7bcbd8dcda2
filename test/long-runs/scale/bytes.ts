import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { migrationFiles } from "../../../src/admin/platform/migrations.ts";
import { deviceId } from "../../../src/shared/identifiers.ts";
import { DEFAULT_RANGE_SIZE } from "../../../src/shared/limits.ts";
import type { StoredEntry } from "../../../src/worker/storage/entry.ts";

/** Bytes of one row with all its indexes. */
export type Bytes = Record<"badge" | "event" | "invitation" | "entry", number>;

/** As `npm run scale -- --measure 100000` prints them; test/node/scale.test.ts holds them to a smaller measurement. */
export const BYTES: Bytes = { badge: 574, event: 455, invitation: 414, entry: 2054 };

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

/** Rows as the service writes them: user IDs as long as a UUID, random numbers of a default range, delivered events. */
const INSERTS: Record<keyof Bytes, string> = {
  badge: `INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id, position, turn,
      issued_at, change, changed_at)
    SELECT ${NUMBER}, ${APPLICATION}, ${text(22)}, ${text(36)}, ${METADATA}, 1, ${EVENT_ID}, n, 1, ${NOW}, n, ${NOW}`,
  event: `INTO webhook_event (application_id, id, event, payload, state, attempts, due_at, last_status, last_outcome,
      last_response, last_milliseconds, created_at, delivered_at)
    SELECT ${APPLICATION}, ${EVENT_ID}, 'badge:created', json_object('id', ${EVENT_ID}, 'event', 'badge:created',
      'createdAt', '2026-11-21T18:00:00.000Z', 'data', json_object('id', '1234567890', 'userId', ${text(36)}, 'metadata',
      json(${METADATA}))), 'delivered', 1, 0, 204, 'answered', '', 120, ${NOW}, ${NOW}`,
  invitation: `INTO invitation (digest, application_id, number, state, creator_device, expires_at, expires_at_time,
      created_at)
    SELECT ${text(43)}, ${APPLICATION}, ${NUMBER}, 'pending', ${text(22)}, '2026-11-21T18:00:00.000Z', ${NOW}, ${NOW}`,
  entry: `INTO journal_entry (place, id, since, is_untold, body)
    SELECT n * 64, ${text(16)}, ${NOW}, 0, '${JSON.stringify(newBadgeEntry())}'`,
};

/** What the object keeps of a group of one new badge. */
function newBadgeEntry(): StoredEntry & { version: 1; calls: { id: string; outcome: object }[] } {
  const [id, userId, device, now] = ["0".repeat(16), "0".repeat(36), deviceId.parse("0".repeat(22)), 1_763_730_000_000];
  const [eventId, number] = ["evt_01JD7X2M8Q4V6W000000000000", 1_004_831_324];
  const metadata = METADATA.slice(1, -1);
  const data = { id: String(number), userId, metadata: JSON.parse(metadata) };
  const payload = JSON.stringify({ id: eventId, event: "badge:created", createdAt: new Date(now).toISOString(), data });
  const columns = {
    ...{ number, device, userId, metadata, signingKeyId: SIGNING_KEY_ID, eventId },
    ...{ position: COUNTED, turn: 1, issuedAt: now, state: "active", change: COUNTED, changedAt: now },
  };
  return {
    version: 1,
    id,
    previous: id,
    position: {
      ...{ sequence: COUNTED, entry: id, lastPosition: COUNTED, lastChange: COUNTED, lastSigningKey: SIGNING_KEY_ID },
      fresh: [{ first: 1_000_000_000, size: DEFAULT_RANGE_SIZE, used: COUNTED }],
      ...{ epoch: id, hourStartedAt: 0, hourUsed: 0 },
    },
    writes: [{ op: "insert", table: "badge", columns: Object.keys(columns), rows: [Object.values(columns)] }],
    events: [{ id: eventId, event: "badge:created", payload, createdAt: now }],
    calls: [{ id, outcome: { kind: "created", number, keyThumbprint: null } }],
    ...{ results: [], erasures: [], keys: [], lastNumber: null, lossAcceptedAt: null },
    unless: { devices: [device], users: [userId] },
  };
}

/** Fills the real tables and divides what SQLite then occupies, pages with their room included, by the rows. */
export function measureBytes(rows: number): Bytes {
  const [d1, object] = [new DatabaseSync(":memory:"), new DatabaseSync(":memory:")];
  for (const file of migrationFiles()) d1.exec(readFileSync(file, "utf8"));
  // The object makes its tables itself, in one script.
  const path = join(import.meta.dirname, "../../../src/worker/core/journal.ts");
  object.exec(/CREATE TABLE IF NOT EXISTS journal_base[^`]*/.exec(readFileSync(path, "utf8"))?.[0] ?? "");
  const bytesOf = (kind: keyof Bytes, db: DatabaseSync): number => {
    const before = sizeOf(db);
    const each = `WITH RECURSIVE row (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < ${rows})`;
    const { changes } = db.prepare(`${each} INSERT OR IGNORE ${INSERTS[kind]} FROM row`).run();
    return Math.round((sizeOf(db) - before) / Number(changes));
  };
  const ofD1 = { badge: bytesOf("badge", d1), event: bytesOf("event", d1), invitation: bytesOf("invitation", d1) };
  return { ...ofD1, entry: bytesOf("entry", object) };
}

function sizeOf(db: DatabaseSync): number {
  const sizes = db.prepare("SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size").get();
  return Number(sizes?.bytes);
}
