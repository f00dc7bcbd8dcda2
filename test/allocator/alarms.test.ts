import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { getTableColumns } from "drizzle-orm";
import { describe, expect, it, vi } from "vitest";
import {
  ENDS_CHUNK_ROWS,
  MAX_STORED_BYTES,
  PRUNE_ENTRIES,
  VERIFY_PAGE_ROWS,
} from "../../src/shared/limits/allocator-limits.ts";
import { Allocator } from "../../src/worker/allocator/allocator.ts";
import { entry, invitation } from "../../src/worker/allocator/tables/schema.ts";
import { issueTo, takeStep, withBadge } from "../badges/life-support.ts";
import { alarmOf, allocatorOf, aroundObjectD1, bindObject, endAllocator, ring } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, useStandingClock } from "../support/clock.ts";
import { isAbout, LOST } from "../support/faults.ts";
import { callServer } from "../support/http.ts";
import { invite, revoke } from "../support/invitations.ts";
import { log } from "../support/log.ts";
import { restore, takeSnapshot } from "../support/restoration.ts";
import { badgeRows, readRows } from "../support/rows.ts";
import { crowded, ENTRY, expectInSync, headOf, loggedSequences, reconcile, sequenceOf, stateOf } from "./support.ts";

/** Contract section 21. */
const MAX_LOG_BYTES = 4_000_000_000;

useStandingClock();

describe("the allocator's alarm (contract sections 5, 12 and 21)", () => {
  it("the alarm is set for the next end of a badge or an invitation", async () => {
    const { application, number } = await withBadge();
    await ring(application);
    await callServer(application, "PATCH", `/v1/badges/${number}`, { expiresAt: ahead(3 * HOUR) });
    await invite(application, ahead(2 * HOUR));
    moveClock(2 * MINUTE);
    await ring(application);
    expect(await alarmOf(application)).toBe(Date.now() - 2 * MINUTE + 2 * HOUR);
    moveClock(2 * HOUR);
    await ring(application);
    expect(await alarmOf(application)).toBeLessThanOrEqual(Date.now() + HOUR);
  });

  it("the alarm records ends without a request: lists, history and D1 have them", async () => {
    const { application, number } = await withBadge();
    await callServer(application, "PATCH", `/v1/badges/${number}`, { expiresAt: ahead(HOUR) });
    moveClock(HOUR);
    expect(await runDurableObjectAlarm(allocatorOf(application))).toBe(true);
    expect(await badgeRows(application)).toMatchObject([{ state: "active", endedAt: Date.now() }]);
    expect((await callServer(application, "GET", "/v1/history?action=badge:expired")).body).toMatchObject({
      history: [{ actor: { kind: "service" }, badgeId: number }],
    });
    await expectInSync(application);
  });

  it("the alarm records many badges that end at one moment, each with a change number", async () => {
    const count = 2 * ENDS_CHUNK_ROWS + 100;
    const application = await crowded(count, { columns: { expires_at: Date.now() - 1000 } });
    await ring(application);
    const rows = await badgeRows(application);
    expect(rows.filter(({ endedAt }) => endedAt === null)).toEqual([]);
    expect(new Set(rows.map(({ change }) => change)).size).toBe(count);
    await expectInSync(application);
  });

  it("the alarm records an end during a verification, and does not wait for all of it", async () => {
    const application = await crowded(3 * VERIFY_PAGE_ROWS, { columns: { metadata: null } });
    await callServer(application, "PATCH", `/v1/badges/${application.firstNumber}`, { expiresAt: ahead(HOUR) });
    const alarms = vi.spyOn(Allocator.prototype, "alarm");
    let pages = 0;
    let rung: Promise<void> | undefined;
    const pagesBefore: number[] = [];
    await aroundObjectD1(application, () => async (statements, send) => {
      if (isAbout(statements, ENTRY)) pagesBefore.push(pages);
      else if (isAbout(statements, "from badge") && ++pages === 1) {
        moveClock(HOUR);
        rung = ring(application);
        while (alarms.mock.calls.length === 0) await scheduler.wait(1);
      }
      return send();
    });
    expect(await reconcile(application, { verify: true })).toMatchObject({ differences: { count: 0 } });
    await rung;
    expect(pages).toBeGreaterThan(6);
    expect(pagesBefore).toHaveLength(1);
    // The first page, and at most two more.
    expect(pagesBefore[0]).toBeLessThanOrEqual(3);
    await expectInSync(application);
  });

  it.each([
    ["0", HOUR],
    ["90", DAY],
  ])("with INVITATION_RETENTION_DAYS = %s the alarm looks for old invitations every %i ms", async (days, pause) => {
    const application = await createApplication();
    await bindObject(application, () => ({ INVITATION_RETENTION_DAYS: days }));
    await invite(application, ahead(2 * DAY));
    await ring(application);
    expect(await alarmOf(application)).toBe(Date.now() + 110_000);
    moveClock(110_000);
    await ring(application);
    expect(await alarmOf(application)).toBe(Date.now() - 110_000 + pause);
  });

  it("the alarm never throws: when D1 fails it logs, and is set again", async () => {
    const { application, number } = await withBadge();
    await callServer(application, "PATCH", `/v1/badges/${number}`, { expiresAt: ahead(HOUR) });
    moveClock(HOUR);
    let isAway = true;
    await aroundObjectD1(application, () => (_, send) => (isAway ? Promise.reject(LOST) : send()));
    for (let alarms = 0; alarms < 8; alarms++) await ring(application);
    expect(await alarmOf(application)).toBeLessThanOrEqual(Date.now() + MINUTE);
    isAway = false;
    await ring(application);
    expect(await stateOf(application, number)).toBe("expired");
    await expectInSync(application);
  });

  it("the alarm is set again after its own error", async () => {
    const { application } = await withBadge();
    await runInDurableObject(allocatorOf(application), (_, { storage }) => {
      storage.sql.exec("ALTER TABLE erasure RENAME TO away");
    });
    await ring(application);
    expect(log.lines()).toContainEqual(
      expect.objectContaining({ level: "error", event: "alarm-failed", application: application.id }),
    );
    expect(await alarmOf(application)).not.toBeNull();
  });

  it("the alarm runs a minute after the first change, 110 seconds after the last, then at the next due work, or a minute after the next change", async () => {
    const { application, number } = await withBadge();
    const changedAt = Date.now();
    expect(await alarmOf(application)).toBe(changedAt + MINUTE);
    moveClock(MINUTE);
    await ring(application);
    expect(await alarmOf(application)).toBe(changedAt + 110_000);
    moveClock(50_000);
    await ring(application);
    // What comes next is the end of the first entries.
    expect(await alarmOf(application)).toBe(changedAt + 31 * DAY);
    moveClock(HOUR);
    await takeStep(application, number, "revoke");
    expect(await alarmOf(application)).toBe(Date.now() + MINUTE);
  });

  // Two ticks may be 90 seconds and a trip to D1 apart without doubting D1 (test/homes/sweep.test.ts).
  it.each([2000, MINUTE, 100_000])(
    "a restore %i ms after the last change is noticed within two minutes, also if the alarm has just run (section 21)",
    async (restoredAfter) => {
      const { application } = await withBadge();
      const snapshot = await takeSnapshot(application);
      const number = await issueTo(application, "phone", "bob");
      moveClock(restoredAfter);
      await endAllocator(application);
      await ring(application);
      await restore(application, snapshot);
      const next = (await alarmOf(application)) ?? Number.POSITIVE_INFINITY;
      expect(next - Date.now()).toBeLessThanOrEqual(2 * MINUTE);
      moveClock(next - Date.now());
      await ring(application);
      expect(await stateOf(application, number)).toBe("active");
    },
  );

  it("an alarm is set also where the only thing to come is an end in the year 9999", async () => {
    const { application, number } = await withBadge();
    const end = { expiresAt: "9999-12-31T23:59:59Z" };
    expect((await callServer(application, "PATCH", `/v1/badges/${number}`, end)).status).toBe(200);
    for (const pause of [MINUTE, 32 * DAY, 32 * DAY]) {
      moveClock(pause);
      await ring(application);
    }
    expect(await alarmOf(application)).not.toBeNull();
  });

  it("one alarm looks at a bounded number of invitations for old ones, and the next alarm goes on behind them", async () => {
    const application = await createApplication();
    await bindObject(application, () => ({ INVITATION_RETENTION_DAYS: "0" }));
    const { token } = await invite(application);
    await revoke(application, token);
    const { digest: _, endedAt: __, ...others } = getTableColumns(invitation);
    const columns = Object.values(others).map(({ name }) => name);
    await runInDurableObject(allocatorOf(application), (_, { storage }) => {
      // Before it in the walk, and not old yet.
      storage.sql.exec(
        `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < 500)
         INSERT INTO invitation (digest, ended_at, ${columns}) SELECT '!' || n, ?, ${columns} FROM place, invitation`,
        Date.now() + DAY,
      );
    });
    for (const left of [1, 0]) {
      await ring(application);
      expect((await readRows(application)).invitations).toHaveLength(left);
    }
  });
});

/** Makes the log claim that the entries after its oldest one take this many bytes. */
const fillLog = (application: TestApplication, bytes: number): Promise<void> =>
  runInDurableObject(allocatorOf(application), (_, { storage: { sql } }) => {
    sql.exec(
      `UPDATE entry SET logged_bytes = iif(sequence = (SELECT min(sequence) FROM entry), 17, 17 + ?) WHERE sequence IN
        (SELECT min(sequence) FROM entry UNION SELECT max(sequence) FROM entry)`,
      bytes,
    );
  });

const shortened = ({ id }: TestApplication) =>
  log.lines().filter(({ event, application }) => event === "log-shortened" && application === id);

describe("the log's length (contract section 21)", () => {
  it("the log keeps what D1 was at in the last 31 days: the alarm deletes older entries", async () => {
    const { application, number } = await withBadge();
    const first = await sequenceOf(application);
    moveClock(3 * DAY);
    await takeStep(application, number, "suspend");
    // D1 was at the first entry until 31 days ago.
    moveClock(31 * DAY);
    await ring(application);
    expect(await loggedSequences(application)).toEqual([first, first + 1]);
    moveClock(1);
    await ring(application);
    expect(await loggedSequences(application)).toEqual([first + 1]);
    moveClock(100 * DAY);
    await ring(application);
    expect(await loggedSequences(application)).toEqual([first + 1]);
    expect((await takeStep(application, number, "resume")).status).toBe(200);
    await expectInSync(application);
  });

  it("a full allocator drops the log's oldest entries, and D1 has since when the log is complete", async () => {
    const { application } = await withBadge();
    await ring(application);
    expect((await headOf(application)).logSince).toBeNull();
    await runInDurableObject(allocatorOf(application), (_, { storage: { sql } }) => {
      Object.defineProperty(sql, "databaseSize", { get: () => MAX_STORED_BYTES + 1 });
    });
    moveClock(DAY);
    await ring(application);
    expect(shortened(application)).toHaveLength(1);
    expect(await loggedSequences(application)).toEqual([await sequenceOf(application)]);
    expect((await headOf(application)).logSince).toBe(Date.now());
    await expectInSync(application);
  });

  it("the log has at most 4 GB: then its oldest entries go, and a line says so once an hour", async () => {
    const { application, number } = await withBadge();
    await takeStep(application, number, "suspend");
    const newest = await sequenceOf(application);
    const before = await loggedSequences(application);
    expect(before.length).toBeGreaterThan(2);
    moveClock(DAY);
    await fillLog(application, MAX_LOG_BYTES);
    await ring(application);
    expect(await loggedSequences(application)).toEqual(before);
    expect(shortened(application)).toEqual([]);
    await fillLog(application, MAX_LOG_BYTES + 1);
    await ring(application);
    expect(await loggedSequences(application)).toEqual([newest]);
    expect(shortened(application)).toMatchObject([{ level: "warn", days: 0 }]);
    for (const pause of [HOUR - 1, 1]) {
      moveClock(pause);
      await takeStep(application, number, pause === 1 ? "suspend" : "resume");
      await fillLog(application, MAX_LOG_BYTES + 1);
      await ring(application);
    }
    expect(shortened(application)).toHaveLength(2);
    await expectInSync(application);
  });

  it("the log counts the bytes of each entry, those of users' texts as UTF-8", async () => {
    const application = await createApplication();
    for (const userId of ["alice", "\u20ac".repeat(100), "carol"])
      await issueTo(application, `phone of ${userId.length}`, userId);
    const rows = await runInDurableObject(allocatorOf(application), (_, { storage: { sql } }) =>
      sql.exec("SELECT changes, calls, logged_bytes FROM entry ORDER BY sequence").toArray(),
    );
    const bytes = rows.map(({ changes, calls }) => 150 + new TextEncoder().encode(`[${changes},${calls}]`).length);
    const sums = bytes.map((_, index) => bytes.slice(0, index + 1).reduce((sum, each) => sum + each));
    expect(rows.map(({ logged_bytes }) => logged_bytes)).toEqual(sums);
  });

  it("one alarm deletes a bounded number of entries, and the next alarm deletes the rest", async () => {
    const { application } = await withBadge();
    const count = PRUNE_ENTRIES + 500;
    const { sequence: _, id: __, keptAt: ___, ...others } = getTableColumns(entry);
    const columns = Object.values(others).map(({ name }) => name);
    await runInDurableObject(allocatorOf(application), (_, { storage }) => {
      storage.sql.exec(
        `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ?)
         INSERT INTO entry (sequence, id, ${columns}, kept_at)
         SELECT -n, 'old ' || n, ${columns}, 0 FROM place, entry WHERE sequence = 2`,
        count,
      );
    });
    await ring(application);
    expect(await loggedSequences(application)).toHaveLength(503);
    await ring(application);
    expect(await loggedSequences(application)).toEqual([-1, 0, 1, 2]);
  });
});
