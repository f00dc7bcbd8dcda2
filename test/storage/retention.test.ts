import { describe, expect, it } from "vitest";
import { historyId } from "../../src/shared/history.ts";
import { newEventId } from "../../src/shared/identifiers.ts";
import { MAX_PURGE_CHUNKS, PURGE_CHUNK_ROWS } from "../../src/shared/limits/sweep-limits.ts";
import { readRetention } from "../../src/worker/scheduling/retention-days.ts";
import { sweepHome } from "../../src/worker/scheduling/sweep.ts";
import type { Checkpoint } from "../../src/worker/storage/retention.ts";
import { expectInSync } from "../allocator/support.ts";
import { bindObject, ring } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "../support/clock.ts";
import { testContext } from "../support/context.ts";
import { runSql } from "../support/home.ts";
import { callServer } from "../support/http.ts";
import { claim, invite, revoke } from "../support/invitations.ts";
import { log } from "../support/log.ts";
import { keptQueue } from "../support/queue.ts";
import { RECORDED_EVENTS, readRows } from "../support/rows.ts";

useStandingClock();

/** Rows of each table that one sweep looks at. */
const SCANNED_ROWS = MAX_PURGE_CHUNKS * PURGE_CHUNK_ROWS;

/** One minute's sweep, which goes on where the one before stopped. */
async function sweepWith(
  variables: Parameters<typeof readRetention>[0] = {},
  cursors = new Map<string, Checkpoint | null>(),
): Promise<void> {
  const { context, deferred } = testContext({ queue: keptQueue(), retention: () => readRetention(variables) });
  await sweepHome(context, {
    get: (name) => cursors.get(name) ?? null,
    set: (name, cursor) => cursors.set(name, cursor),
  });
  await Promise.all(deferred);
}

const events = async (application: TestApplication): Promise<string[]> =>
  (await readRows(application)).events.map(({ state }) => state).toSorted();

const invitations = async (application: TestApplication): Promise<string[]> =>
  (await readRows(application)).invitations.map(({ state }) => state).toSorted();

describe("events and the history (contract sections 18 and 23)", () => {
  it("events are deleted after 30 days if delivered, after 90 if exhausted or held, never while pending", async () => {
    const application = await createApplication();
    for (const state of ["pending", "delivered", "exhausted", "held"]) await fill(application, 1, state);
    for (const [pause, left] of [
      [30 * DAY, ["delivered", "exhausted", "held", "pending"]],
      [1, ["exhausted", "held", "pending"]],
      [60 * DAY - 1, ["exhausted", "held", "pending"]],
      [1, ["pending"]],
      [4000 * DAY, ["pending"]],
    ] as const) {
      moveClock(pause);
      await sweepWith();
      expect(await events(application)).toEqual(left);
    }
  });

  it("EVENT_RETENTION_DAYS changes when events are deleted, to it or three times as many days", async () => {
    const application = await createApplication();
    for (const state of ["delivered", "exhausted"]) await fill(application, 1, state);
    moveClock(2 * DAY + 1);
    await sweepWith({ EVENT_RETENTION_DAYS: "2.5" });
    expect(await events(application)).toEqual(["delivered", "exhausted"]);
    await sweepWith({ EVENT_RETENTION_DAYS: "2" });
    expect(await events(application)).toEqual(["exhausted"]);
    moveClock(4 * DAY);
    await sweepWith({ EVENT_RETENTION_DAYS: "2" });
    expect(await events(application)).toEqual([]);
  });

  it("old events behind many that stay are deleted: each minute continues where the one before stopped", async () => {
    const application = await createApplication();
    await fill(application, SCANNED_ROWS + 200, "pending");
    moveClock(SECOND);
    await fill(application, 1, "delivered");
    moveClock(31 * DAY);
    const cursors = new Map<string, Checkpoint | null>([["eventsDeleted", [application.id, ""]]]);
    await sweepWith({}, cursors);
    expect(await events(application)).toHaveLength(SCANNED_ROWS + 201);
    await sweepWith({}, cursors);
    expect(await events(application)).toEqual(Array.from({ length: SCANNED_ROWS + 200 }, () => "pending"));
  });

  it("events are found whenever they become old: a scan that has reached the end starts again", async () => {
    const application = await createApplication();
    await fill(application, 1, "delivered");
    moveClock(31 * DAY);
    const cursors = new Map<string, Checkpoint | null>([["eventsDeleted", ["app_~", ""]]]);
    for (let minute = 0; minute < 3; minute++) await sweepWith({}, cursors);
    expect(await events(application)).toEqual([]);
  });

  it("events stay if EVENT_RETENTION_DAYS is not a number, which is logged", async () => {
    const application = await createApplication();
    await fill(application, 1, "delivered");
    moveClock(1000 * DAY);
    for (const text of ["", "30 days", "-1", "1e3", "NaN"]) await sweepWith({ EVENT_RETENTION_DAYS: text });
    expect(await events(application)).toEqual(["delivered"]);
    const failed = log.lines().filter(({ event }) => event === "sweep-task-failed");
    expect(failed.map(({ task }) => task)).toEqual(Array.from({ length: 5 }, () => "eventsDeleted"));
  });

  it("rows of the history are deleted after 400 days, or after HISTORY_RETENTION_DAYS", async () => {
    const application = await createApplication();
    const rows = async () =>
      (await runSql("SELECT id FROM history WHERE application_id = ?1", application.id)).results.length;
    const addRow = () =>
      runSql(
        "INSERT INTO history (application_id, id, at, action, actor_kind) VALUES (?1, ?2, ?3, 'key:rotated', 'server')",
        application.id,
        historyId(Date.now()),
        Date.now(),
      );
    await addRow();
    moveClock(400 * DAY);
    await sweepWith();
    expect(await rows()).toBe(1);
    moveClock(1);
    await sweepWith();
    expect(await rows()).toBe(0);
    await addRow();
    moveClock(10 * DAY + 1);
    await sweepWith({ HISTORY_RETENTION_DAYS: "10" });
    expect(await rows()).toBe(0);
  });
});

/** Creates an invitation and revokes it. */
async function revokeNow(application: TestApplication): Promise<void> {
  const { token } = await invite(application);
  expect((await revoke(application, token)).status).toBe(200);
}

/** Events of one application, all made now. */
async function fill({ id }: TestApplication, count: number, state: string): Promise<void> {
  const ids = Array.from({ length: count }, () => newEventId(Date.now()));
  await runSql(
    `INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
     SELECT ?1, value, 'badge:created', '{}', ?3, ?4, ?5 FROM json_each(?2)`,
    id,
    JSON.stringify(ids),
    state,
    Date.now() + 1000 * DAY,
    Date.now(),
  );
}

describe("invitations (contract section 18)", () => {
  it("revoked and expired invitations are deleted 365 days after their number was released, and pending ones never", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    await revokeNow(application);
    await invite(application, ahead(MINUTE));
    await invite(application, ahead(365 * DAY));
    moveClock(MINUTE);
    await ring(application);
    expect(await invitations(application)).toEqual(["expired", "pending", "revoked"]);
    moveClock(365 * DAY - MINUTE - 1);
    await ring(application);
    expect(await invitations(application)).toEqual(["expired", "pending", "revoked"]);
    // The allocator's alarm looks for old ones once a day.
    moveClock(DAY);
    await ring(application);
    expect(await invitations(application)).toEqual(["expired"]);
    moveClock(365 * DAY);
    await ring(application);
    expect(await invitations(application)).toEqual([]);
  });

  it("claimed invitations are deleted 365 days after their badge ended; the number stays taken, but not the Idempotency-Key", async () => {
    const application = await createApplication({ size: 2 });
    const ask = (method: string, path: string, body?: object) =>
      callServer(application, method, path, body, { udid: "server", "idempotency-key": "visit 1" });
    const inviteAgain = () => ask("POST", "/v1/invitation", { expiresAt: ahead(HOUR) });
    const { badgeId, id: token } = (await inviteAgain()).body;
    expect((await claim(application, "phone", "alice", token)).status).toBe(201);
    moveClock(2000 * DAY);
    await ring(application);
    expect(await invitations(application)).toEqual(["claimed"]);
    expect((await ask("PATCH", `/v1/badges/${badgeId}/revoke`)).status).toBe(200);
    moveClock(365 * DAY - 1);
    await ring(application);
    expect(await invitations(application)).toEqual(["claimed"]);
    moveClock(DAY);
    await ring(application);
    expect(await invitations(application)).toEqual([]);
    expect((await claim(application, "tablet", "bob", token)).status).toBe(404);
    const later = await inviteAgain();
    expect([later.status, later.body.id]).toEqual([201, token]);
    expect(later.body.badgeId).not.toBe(badgeId);
    expect((await ask("PATCH", `/v1/invitation/${badgeId}/revoke`)).status).toBe(404);
    expect(await invitations(application)).toEqual(["pending"]);
    expect((await claim(application, "tablet", "bob", later.body.id)).body.badgeId).toBe(later.body.badgeId);
    const none = await claim(application, "watch", "eve", null);
    expect([none.status, none.body]).toEqual([503, { error: "NUMBERS_EXHAUSTED" }]);
    const { badges } = await readRows(application);
    expect(badges.find(({ number }) => String(number) === badgeId)).toMatchObject({
      state: "revoked",
      userId: "alice",
    });
  });

  it("INVITATION_RETENTION_DAYS changes when invitations are deleted", async () => {
    const application = await createApplication();
    await bindObject(application, () => ({ INVITATION_RETENTION_DAYS: "0.05" }));
    await revokeNow(application);
    for (const [pause, left] of [
      [HOUR, ["revoked"]],
      [0.2 * HOUR, ["revoked"]],
      [1.2 * HOUR, []],
    ] as const) {
      moveClock(pause);
      await ring(application);
      expect(await invitations(application)).toEqual(left);
    }
    await expectInSync(application);
  });
});
