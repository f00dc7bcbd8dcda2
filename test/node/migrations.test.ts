import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { z } from "zod";

const MIGRATIONS = join(import.meta.dirname, "../../migrations");
const files = readdirSync(MIGRATIONS)
  .filter((name) => name.endsWith(".sql"))
  .sort();

/** A database of release 1.0.0. */
function firstRelease(): DatabaseSync {
  const db = new DatabaseSync(":memory:");
  migrate(db, "0000", "0001");
  db.exec(`
    INSERT INTO application (id, name, first_number, last_number, sealed_device_key, sealing_version, created_at)
      VALUES ('app_1', 'Old', 1, 1000, 'sealed', 1, 1000), ('app_2', 'Empty', 1001, 2000, 'sealed', 1, 1000);
    INSERT INTO application_secret VALUES ('sec_1', 'app_1', 'current', 'digest', 'sealed', 1, 1000);
    INSERT INTO signing_key VALUES (1, 'app_1', 'kid-1', 'public', 'sealed', 1, 1000),
      (2, 'app_1', 'kid-2', 'public', 'sealed', 1, 2000), (3, 'app_1', 'kid-3', 'public', 'sealed', 1, 9000000000000);
    INSERT INTO sealing_key VALUES (1, 'public', 1000);
    INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id, position, turn,
        invitation, issued_at, retired_at)
      VALUES (1, 'app_1', 'kiosk', 'alice', '{"os":"iOS"}', 1, 'evt_1', 1, 1, NULL, 1500, NULL),
        (2, 'app_1', 'kiosk', 'bob', NULL, 1, 'evt_2', 2, 1, NULL, 1500, NULL),
        (3, 'app_1', 'kiosk', 'carol', NULL, 2, 'evt_3', 3, 7, NULL, 2500, NULL),
        (4, 'app_1', 'phone', 'dave', NULL, 2, 'evt_4', NULL, 2, NULL, 2500, 2600),
        (5, 'app_1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'digest', NULL, NULL),
        (6, 'app_1', 'phone', 'dave', NULL, 2, 'evt_6', NULL, 1, NULL, 2400, 2550);
    INSERT INTO invitation (digest, application_id, number, state, creator_device, expires_at, expires_at_time, created_at)
      VALUES ('digest', 'app_1', 5, 'pending', 'server', '2026-11-22T00:00:00Z', 1795305600000, 1000);
    INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
      VALUES ('app_1', 'evt_1', 'badge:created', '{}', 'pending', 0, 1500);
    INSERT INTO reconciliation (application_id, restored, requested_at, step, through) VALUES ('app_1', 'd1', 1, 'leases', 0)`);
  return db;
}

/** Applies the migrations between two, both included. */
function migrate(db: DatabaseSync, from: string, to: string): void {
  for (const name of files) {
    if (name >= from && name.slice(0, 4) <= to) db.exec(readFileSync(join(MIGRATIONS, name), "utf8"));
  }
}

/** Release 1.0.0 took the position of a replaced badge away. */
function withoutPosition(row: unknown): unknown {
  const { position, ...others } = z.looseObject({ position: z.number().nullable() }).parse(row);
  return position === null ? others : { ...others, position };
}

const names = z.array(z.object({ name: z.string() }));

function tablesOf(db: DatabaseSync): Map<string, unknown[]> {
  const tables = names.parse(db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all());
  return new Map(
    tables
      .filter(({ name }) => !name.startsWith("sqlite_"))
      .map(({ name }) => [
        name,
        db
          .prepare(`SELECT * FROM ${name} ORDER BY 1, 2`)
          .all()
          .map((row) => ({ ...row })),
      ]),
  );
}

describe("a database of release 1.0.0", () => {
  it("keeps every row and every value when it is migrated", () => {
    const db = firstRelease();
    const before = tablesOf(db);
    expect([...before.values()].every((rows) => rows.length > 0)).toBe(true);
    migrate(db, "0002", "9999");
    const after = tablesOf(db);
    for (const [name, rows] of before) {
      const kept = name === "badge" ? rows.map(withoutPosition) : rows;
      expect(after.get(name), name).toMatchObject(kept);
    }
  });

  it("lists its badges as before, and a replaced one is the application's last in the feed (contract section 13)", () => {
    const db = firstRelease();
    migrate(db, "0002", "9999");
    const badges = db.prepare("SELECT number, position, state, ended_at, change FROM badge ORDER BY number");
    expect(badges.all().map((row) => ({ ...row }))).toEqual(
      [
        { number: 1, position: 1, state: "active", ended_at: null, change: null },
        { number: 2, position: 2, state: "active", ended_at: null, change: null },
        { number: 3, position: 3, state: "active", ended_at: null, change: null },
        { number: 4, position: 5, state: "replaced", ended_at: 2600, change: null },
        { number: 6, position: 4, state: "replaced", ended_at: 2550, change: null },
        { number: 5, position: null, state: "active", ended_at: null, change: null },
      ].toSorted((one, other) => one.number - other.number),
    );
  });

  it("subscribes to the same events as before, and has cursors that cannot be guessed (contract sections 13 and 18)", () => {
    const db = firstRelease();
    migrate(db, "0002", "9999");
    const applications = z
      .array(z.object({ id: z.string(), events: z.string(), feed_epoch: z.string() }))
      .parse(db.prepare("SELECT id, events, feed_epoch FROM application").all());
    expect(applications).toHaveLength(2);
    expect(new Set(applications.map(({ feed_epoch: epoch }) => epoch)).size).toBe(2);
    for (const { events, feed_epoch: epoch } of applications) {
      expect(events).toBe("badge:created");
      expect(epoch).toMatch(/^[0-9a-f]{32}$/);
    }
  });

  it("has no status lists until an application turns them on, with a lifetime of a day (contract section 14)", () => {
    const db = firstRelease();
    migrate(db, "0002", "9999");
    const applications = db.prepare("SELECT status_list, status_lifetime_seconds FROM application").all();
    expect(applications.map((row) => ({ ...row }))).toEqual([
      { status_list: 0, status_lifetime_seconds: 86_400 },
      { status_list: 0, status_lifetime_seconds: 86_400 },
    ]);
  });

  it("finds only the badges that had ended by the index of status lists (contract section 14)", () => {
    const db = firstRelease();
    migrate(db, "0002", "9999");
    const indexed = db.prepare(
      `SELECT number FROM badge INDEXED BY badge_status
       WHERE application_id = 'app_1' AND position IS NOT NULL AND (state <> 'active' OR ended_at IS NOT NULL)`,
    );
    expect(indexed.all().map((row) => ({ ...row }))).toEqual([{ number: 6 }, { number: 4 }]);
  });

  it("has no secrets for people, and at most one of each name in an application (contract section 19)", () => {
    const db = firstRelease();
    migrate(db, "0002", "9999");
    expect(db.prepare("SELECT * FROM console_secret").all()).toEqual([]);
    const insert = db.prepare("INSERT INTO console_secret VALUES (?, 'Ann', ?, 'digest', 1)");
    insert.run("app_1", "sec_1");
    insert.run("app_2", "sec_2");
    expect(() => insert.run("app_1", "sec_3")).toThrow("UNIQUE");
  });

  it("has unbound badges, and requires no proofs (contract section 15)", () => {
    const db = firstRelease();
    migrate(db, "0002", "9999");
    const badges = db.prepare("SELECT DISTINCT key_thumbprint, rebind_until FROM badge").all();
    expect(badges.map((row) => ({ ...row }))).toEqual([{ key_thumbprint: null, rebind_until: null }]);
    const applications = db.prepare("SELECT DISTINCT require_proof, bind_until FROM application").all();
    expect(applications.map((row) => ({ ...row }))).toEqual([{ require_proof: 0, bind_until: null }]);
  });

  it("finds a user device's badge by the index that it is unique in, and none in that of keys (contract section 15)", () => {
    const db = firstRelease();
    migrate(db, "0002", "9999");
    const found = db.prepare(
      `SELECT number FROM badge INDEXED BY badge_user_device
       WHERE application_id = 'app_1' AND device = 'kiosk' AND (key_thumbprint IS NOT NULL) IN (0, 1)
         AND user_id = 'bob' AND position IS NOT NULL AND retired_at IS NULL`,
    );
    expect(found.all().map((row) => ({ ...row }))).toEqual([{ number: 2 }]);
    const keys = db.prepare(
      `SELECT number FROM badge INDEXED BY badge_device_key
       WHERE position IS NOT NULL AND retired_at IS NULL AND key_thumbprint IS NOT NULL`,
    );
    expect(keys.all()).toEqual([]);
  });

  it("has the numbers of its applications registered (contract section 17)", () => {
    const db = firstRelease();
    migrate(db, "0002", "9999");
    const registered = db.prepare("SELECT * FROM number_range ORDER BY first_number").all();
    expect(registered.map((row) => ({ ...row }))).toEqual([
      { application_id: "app_1", first_number: 1, last_number: 1000, registered_at: 1000 },
      { application_id: "app_2", first_number: 1001, last_number: 2000, registered_at: 1000 },
    ]);
  });

  it("gets signing keys that sign already: from when they were made, never from a time to come", () => {
    const db = firstRelease();
    migrate(db, "0002", "9999");
    const keys = z
      .array(z.object({ id: z.number(), signs_from: z.number() }))
      .parse(db.prepare("SELECT id, signs_from FROM signing_key ORDER BY id").all());
    expect(keys.slice(0, 2)).toEqual([
      { id: 1, signs_from: 1000 },
      { id: 2, signs_from: 2000 },
    ]);
    expect(keys[2]?.signs_from).toBeLessThanOrEqual(Date.now());
  });

  it("finds the current badge of a device by the new index, without first and retired ones", () => {
    const db = firstRelease();
    migrate(db, "0002", "9999");
    const indexed = db.prepare(
      `SELECT number FROM badge INDEXED BY badge_device_turn
       WHERE application_id = 'app_1' AND position IS NOT NULL AND retired_at IS NULL AND turn > 1`,
    );
    expect(indexed.all().map((row) => ({ ...row }))).toEqual([{ number: 3 }]);
  });
});

describe("the outbox of a database from before events were one row each", () => {
  const EVENTS = `SELECT application_id, id, event, payload, state, attempts, due_at, last_status, last_outcome,
    last_response, last_milliseconds, created_at, delivered_at FROM webhook_event ORDER BY application_id, id`;
  const list = (db: DatabaseSync, sql: string) =>
    db
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }));

  function withEvents(): DatabaseSync {
    const db = firstRelease();
    migrate(db, "0002", "0007");
    db.exec(`
      INSERT INTO webhook_event VALUES
        ('app_2', 'evt_1', 'badge:revoked', '{"other":1}', 'pending', 3, 5000, 500, 'answered', 'no', 12, 1400, NULL),
        ('app_1', 'evt_4', 'badge:created', '{"ü":"漢"}', 'delivered', 1, 0, 204, 'answered', '', 80, 1700, 1800),
        ('app_1', 'evt_3', 'badge:created', '{}', 'held', 0, 0, NULL, NULL, NULL, NULL, 1600, NULL),
        ('app_1', 'evt_2', 'webhook:test', '{}', 'exhausted', 1, -1, NULL, 'timeout', NULL, 15000, 1550, NULL)`);
    return db;
  }

  it("keeps every event and every value, none of them leased to a sender (contract section 8)", () => {
    const db = withEvents();
    const before = list(db, EVENTS);
    expect(before).toHaveLength(5);
    migrate(db, "0008", "0008");
    expect(list(db, EVENTS)).toEqual(before);
    expect(list(db, "SELECT DISTINCT lease_until FROM webhook_event")).toEqual([{ lease_until: 0 }]);
  });

  it("still has each event once, now without a row ID, and finds due and stopped ones by their indexes", () => {
    const db = withEvents();
    migrate(db, "0008", "0008");
    expect(() => db.exec("INSERT INTO webhook_event SELECT * FROM webhook_event LIMIT 1")).toThrow("UNIQUE");
    expect(() => db.prepare("SELECT rowid FROM webhook_event")).toThrow("no such column: rowid");
    const due = "SELECT id, due_at FROM webhook_event INDEXED BY webhook_event_due WHERE state = 'pending'";
    expect(list(db, `${due} ORDER BY due_at`)).toEqual([
      { id: "evt_1", due_at: 0 },
      { id: "evt_1", due_at: 5000 },
    ]);
    const stopped =
      "SELECT id FROM webhook_event INDEXED BY webhook_event_stopped WHERE state IN ('exhausted', 'held')";
    expect(list(db, `${stopped} ORDER BY id`)).toEqual([{ id: "evt_2" }, { id: "evt_3" }]);
  });
});
