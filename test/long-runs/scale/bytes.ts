import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createPermutation } from "../../../src/worker/allocator/permutation.ts";
import { Dice } from "../dice.ts";
import { migrationFiles } from "../migrations.ts";

const PROJECT = join(import.meta.dirname, "../../..");

/** Bytes of one row with all its indexes. */
export interface Bytes {
  badge: number;
  event: number;
  invitation: number;
  lease: number;
}

/** As `npm run scale -- --measure 100000` prints them; test/node/scale.test.ts holds them to a smaller measurement. */
export const BYTES: Bytes = { badge: 573, event: 484, invitation: 284, lease: 177 };

const METADATA = JSON.stringify({ deviceModel: "Pixel 9 Pro", os: "Android", osVersion: "16", sdkVersion: "3.2.1" });

/**
 * Fills the real tables with rows as the service writes them (random numbers of a default range, user IDs as long as
 * a UUID, delivered events) and divides what SQLite then occupies, pages with their room included, by the rows.
 */
export function measureBytes(rows: number): Bytes {
  const d1 = new DatabaseSync(":memory:");
  for (const file of migrationFiles()) d1.exec(readFileSync(file, "utf8"));
  const object = new DatabaseSync(":memory:");
  object.exec(ledgerTables());
  const dice = new Dice(1);
  const place = createPermutation(new Uint8Array(32), 10_000_000);
  const insert = inserts(d1, object);
  const measured: Bytes = { badge: 0, event: 0, invitation: 0, lease: 0 };
  for (const kind of ["badge", "event", "invitation", "lease"] as const) {
    const db = kind === "lease" ? object : d1;
    const before = sizeOf(db);
    db.exec("BEGIN");
    for (let n = 0; n < rows; n++) insert[kind](n, 1_000_000_000 + place(n), dice);
    db.exec("COMMIT");
    measured[kind] = Math.round((sizeOf(db) - before) / rows);
  }
  return measured;
}

function inserts(d1: DatabaseSync, object: DatabaseSync) {
  const badge = d1.prepare(
    `INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id, position, turn,
       issued_at, change, changed_at) VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, 1, ?8, ?7, ?8)`,
  );
  const event = d1.prepare(
    `INSERT INTO webhook_event (application_id, id, event, payload, state, attempts, due_at, last_status, last_outcome,
       last_response, last_milliseconds, created_at, delivered_at)
     VALUES (?, ?, 'badge:created', ?, 'delivered', 1, ?, 204, 'answered', '', 120, ?, ?)`,
  );
  const invitation = d1.prepare(
    `INSERT INTO invitation (digest, application_id, number, state, creator_device, expires_at, expires_at_time,
       created_at) VALUES (?, ?, ?, 'pending', ?, '2026-11-21T18:00:00.000Z', ?, ?)`,
  );
  const lease = object.prepare("INSERT INTO lease (holder, number, leased_at, confirmed) VALUES (?, ?, ?, 2)");
  const application = "app_7x2m8q4v6w9y3z5a7b1c";
  const now = 1_763_730_000_000;
  const eventId = (n: number) => `evt_01JD7X2M8Q4V6W${String(n).padStart(12, "0")}`;
  return {
    badge: (n: number, number: number, dice: Dice) =>
      badge.run(number, application, text(dice, 22), text(dice, 36), METADATA, eventId(n), n + 1, now + n),
    event: (n: number, number: number, dice: Dice) => {
      const data = { id: String(number), userId: text(dice, 36), metadata: JSON.parse(METADATA) };
      const createdAt = new Date(now + n).toISOString();
      const payload = JSON.stringify({ id: eventId(n), event: "badge:created", createdAt, data });
      return event.run(application, eventId(n), payload, now + n, now + n, now + n);
    },
    invitation: (n: number, number: number, dice: Dice) =>
      invitation.run(text(dice, 43), application, number, text(dice, 22), now + n, now + n),
    lease: (n: number, number: number, dice: Dice) =>
      lease.run(`device:${text(dice, 22)}:${text(dice, 36)}`, number, now + n),
  };
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const text = (dice: Dice, length: number): string =>
  Array.from({ length }, () => LETTERS[Math.floor(dice.next() * LETTERS.length)]).join("");

/** The object makes its tables itself. */
function ledgerTables(): string {
  const script = /CREATE TABLE IF NOT EXISTS permutation_key[^`]*/.exec(
    readFileSync(join(PROJECT, "src/worker/allocator/ledger-tables.ts"), "utf8"),
  );
  if (!script) throw new Error("src/worker/allocator/ledger-tables.ts no longer makes its tables in one script");
  return script[0];
}

function sizeOf(db: DatabaseSync): number {
  const pragma = (name: string) => Number(Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
  return pragma("page_count") * pragma("page_size");
}
