import { describe, expect, it, vi } from "vitest";
import { SUBSCRIBABLE_EVENTS } from "../../src/shared/events.ts";
import { issueTo, signOn, takeStep, withBadge } from "../badges/life-support.ts";
import { alarmOf, aroundObjectD1, endAllocator, loseStorage, ring, wake } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { DAY, HOUR, moveClock, useStandingClock } from "../support/clock.ts";
import { isAbout, LOST } from "../support/faults.ts";
import { runSql } from "../support/home.ts";
import { callServer, outcome } from "../support/http.ts";
import { claim, invite, revoke } from "../support/invitations.ts";
import { log } from "../support/log.ts";
import { restore, type Snapshot, takeSnapshot } from "../support/restoration.ts";
import { badgeRows, eventRows } from "../support/rows.ts";
import {
  aroundNext,
  aroundNextEntry,
  crowded,
  ENTRY,
  expectInSync,
  headOf,
  login,
  loseResponse,
  reconcile,
  restoreAndTell,
  stateOf,
} from "./support.ts";

useStandingClock();

/** An application with a badge of alice's, whose D1 was restored to a moment that the log does not reach any more. */
async function restoredTooFar() {
  const application = await createApplication({ webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1 });
  const { token } = await invite(application, new Date(Date.now() + 300 * DAY).toISOString());
  const snapshot = await takeSnapshot(application);
  const number = await issueTo(application, "phone", "alice");
  moveClock(32 * DAY);
  await ring(application);
  await takeStep(application, number, "suspend");
  await takeStep(application, number, "resume");
  const { headers } = await callServer(application, "GET", "/v1/changes");
  await restoreAndTell(application, snapshot);
  return { application, number, token, cursor: headers.get("pagination-cursor") ?? "" };
}

/** An application with a badge, whose allocator lost its storage and has copied its rows from D1. */
async function copied(disturb = async (_: TestApplication) => {}) {
  const { application } = await withBadge();
  await loseStorage(application);
  await disturb(application);
  for (const _ of [1, 2]) await wake(application);
  return { application };
}

/** D1 was restored to `early` while the allocator lost its storage, and then to `late`, of which that cannot know. */
async function undoRestore(application: TestApplication, early: Snapshot, late: Snapshot): Promise<void> {
  await restore(application, early);
  await loseStorage(application);
  moveClock(1);
  await wake(application);
  moveClock(1);
  await restoreAndTell(application, late);
}

const unknown = ({ id }: TestApplication) =>
  log.lines().filter(({ event, application }) => event === "database-unknown" && application === id);

describe("D1's head that the log does not know (contract section 21)", () => {
  it("an unknown D1 gives calls, logins and signatures 503, and nothing is overwritten", async () => {
    const { application, number } = await restoredTooFar();
    const before = await takeSnapshot(application);
    expect(unknown(application)[0]).toMatchObject({ level: "error" });
    const answers = [
      await login(application, "phone"),
      await login(application, "new", "bob"),
      await signOn(application, "phone"),
      await takeStep(application, number, "suspend"),
    ];
    expect(answers.map(outcome)).toEqual(Array(4).fill("503 UNAVAILABLE"));
    await ring(application);
    await endAllocator(application);
    expect(outcome(await takeStep(application, number, "suspend"))).toBe("503 UNAVAILABLE");
    expect(await takeSnapshot(application)).toEqual(before);
    expect(await reconcile(application)).toMatchObject({ state: "database-unknown", republished: false });
  });

  it("readers are stopped also when the first try to stop them fails while a caller waits", async () => {
    const { application } = await withBadge();
    await runSql("UPDATE application_head SET entry = 'unknown' WHERE application_id = ?1", application.id);
    await endAllocator(application);
    const fail = vi.fn(() => Promise.reject(LOST));
    await aroundNext(application, "UPDATE application_head SET readable_from", fail);
    expect(outcome(await login(application, "new", "bob"))).toBe("503 UNAVAILABLE");
    expect(fail).toHaveBeenCalledOnce();
    expect((await headOf(application)).readableFrom).toBe(Number.MAX_SAFE_INTEGER);
  });

  it("an allocator whose D1 is unknown compares with it every ten minutes", async () => {
    const { application } = await restoredTooFar();
    await ring(application);
    expect(await alarmOf(application)).toBe(Date.now() + 600_000);
  });

  it("`reconcile --republish` replaces the rows of an unknown D1 with the allocator's, and the service continues", async () => {
    const { application, number, token, cursor } = await restoredTooFar();
    expect(await reconcile(application, { republish: true })).toMatchObject({ state: "in-sync", republished: true });
    await expectInSync(application);
    expect(await stateOf(application, number)).toBe("active");
    expect(outcome(await login(application, "phone"))).toBe("200");
    expect((await signOn(application, "phone")).status).toBe(200);
    expect((await claim(application, "visitor", "bob", token)).status).toBe(201);
    expect((await login(application, "new", "carol")).status).toBe(201);
    expect(outcome(await callServer(application, "GET", `/v1/changes?cursor=${cursor}`))).toBe("410 EXPIRED_CURSOR");
    await expectInSync(application);
  });

  it.each<[string, () => Promise<{ application: TestApplication }>]>([
    ["also of those older than the log", restoredTooFar],
    ["that the allocator had copied with its rows", copied],
    [
      "that it had copied, though the first response of the copy was lost",
      () => copied((application) => aroundNextEntry(application, loseResponse)),
    ],
  ])("a republication brings back the signing keys of all badges, %s", async (_, prepare) => {
    const { application } = await prepare();
    const ofApplication = "FROM signing_key WHERE application_id = ?1";
    const { results: keys } = await runSql(`SELECT * ${ofApplication}`, application.id);
    expect(keys).toHaveLength(1);
    await runSql(`DELETE ${ofApplication}`, application.id);
    await reconcile(application, { republish: true });
    expect((await runSql(`SELECT * ${ofApplication}`, application.id)).results).toEqual(keys);
  });

  it.each(["ends", "gets no response"])(
    "a number that only D1 has as an issued badge is never drawn, though the republication %s half-way",
    async (what) => {
      const application = await createApplication({ size: 1, reuseAfterSeconds: 0 });
      const { token, number } = await invite(application);
      await revoke(application, token);
      moveClock(HOUR);
      const early = await takeSnapshot(application);
      expect(Number(await issueTo(application, "phone-2", "bob"))).toBe(number);
      const late = await takeSnapshot(application);
      await undoRestore(application, early, late);
      let [isDone, isReadLost] = [false, false];
      await aroundObjectD1(application, (state) => async (statements, send) => {
        if (isReadLost) {
          isReadLost = false;
          throw LOST;
        }
        const sent = await send();
        if (isDone || !isAbout(statements, "DELETE FROM badge")) return sent;
        isDone = true;
        if (what === "ends") state.abort("the allocator ends");
        isReadLost = true;
        throw LOST;
      });
      await reconcile(application, { republish: true }).catch(() => {});
      await reconcile(application, { republish: true });
      await expectInSync(application);
      expect(outcome(await login(application, "phone-3", "carol"))).toBe("503 NUMBERS_EXHAUSTED");
    },
  );

  it("readers can read again when D1 is restored to a moment that the log knows", async () => {
    const { application, number } = await withBadge();
    const known = await takeSnapshot(application);
    await runSql("UPDATE application_head SET entry = 'nobody knows' WHERE application_id = ?1", application.id);
    await wake(application, true);
    expect(outcome(await takeStep(application, number, "suspend"))).toBe("503 UNAVAILABLE");
    await restoreAndTell(application, known);
    expect((await takeStep(application, number, "suspend")).status).toBe(200);
    expect(outcome(await signOn(application, "phone"))).toBe("403 SUSPENDED_BADGE");
    await expectInSync(application);
  });
});

describe("a republication (contract sections 21 and 24)", () => {
  it("a republication keeps the history of a person who was erased and came back, and sends no delivered event again", async () => {
    const { application } = await withBadge({ webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1 });
    await callServer(application, "PATCH", "/v1/users/alice/erase");
    moveClock(1000);
    const number = await issueTo(application, "phone", "alice");
    await takeStep(application, number, "suspend");
    await callServer(application, "PATCH", "/v1/users/alice/block");
    await runSql("UPDATE webhook_event SET state = 'delivered' WHERE application_id = ?1", application.id);
    // Retention deletes delivered events (section 8).
    const [purged] = await eventRows(application);
    await runSql("DELETE FROM webhook_event WHERE id = ?1", purged?.id ?? "");
    const named = "SELECT action FROM history WHERE application_id = ?1 AND user_id = 'alice' ORDER BY id";
    const before = (await runSql(named, application.id)).results;
    expect(before).toHaveLength(3);
    moveClock(1000);
    expect(await reconcile(application, { republish: true })).toMatchObject({ republished: true });
    expect((await runSql(named, application.id)).results).toEqual(before);
    expect((await eventRows(application)).map(({ state }) => state)).toEqual(["delivered"]);
    await expectInSync(application);
  });

  it("a republication replaces a badge that only D1 has, and its number is never drawn, because it was issued", async () => {
    const application = await createApplication({ size: 3 });
    const first = await issueTo(application, "phone-1", "alice");
    const early = await takeSnapshot(application);
    const lost = await issueTo(application, "phone-2", "bob");
    const late = await takeSnapshot(application);
    await undoRestore(application, early, late);
    expect(outcome(await login(application, "phone-3", "carol"))).toBe("503 UNAVAILABLE");
    await reconcile(application, { republish: true });
    await expectInSync(application);
    const third = await issueTo(application, "phone-3", "carol");
    expect(new Set([first, lost, third]).size).toBe(3);
    expect(outcome(await login(application, "phone-4", "dave"))).toBe("503 NUMBERS_EXHAUSTED");
    const places = (await badgeRows(application)).map(({ ordinal }) => ordinal);
    expect(places).not.toContain(2);
  });

  it("a republication that ends half-way leaves D1 unknown, readers wait, and it starts again", async () => {
    const { application, number } = await restoredTooFar();
    let batches = 0;
    await aroundObjectD1(application, (state) => async (statements, send) => {
      if (isAbout(statements, ENTRY) && ++batches === 3) {
        state.abort("the allocator ends");
        return new Promise(() => {});
      }
      return send();
    });
    await reconcile(application, { republish: true }).catch(() => {});
    expect(outcome(await signOn(application, "phone"))).toBe("503 UNAVAILABLE");
    expect(outcome(await takeStep(application, number, "suspend"))).toBe("503 UNAVAILABLE");
    await wake(application);
    await expectInSync(application);
    expect(await stateOf(application, number)).toBe("active");
  });

  it("a republication sends history and events of many entries in few batches, in their order, erasures included", async () => {
    const events = SUBSCRIBABLE_EVENTS.join();
    const { application } = await withBadge({ webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1, events });
    const { id } = application;
    await callServer(application, "PATCH", "/v1/users/alice/erase");
    moveClock(1000);
    const number = await issueTo(application, "phone", "alice");
    for (let step = 0; step < 60; step++) await takeStep(application, number, step % 2 ? "resume" : "suspend");
    const read = async () => [
      (await runSql("SELECT * FROM history WHERE application_id = ?1 ORDER BY id", id)).results,
      (await runSql("SELECT id, payload FROM webhook_event WHERE application_id = ?1 ORDER BY id", id)).results,
    ];
    const before = await read();
    expect(before.map((rows) => rows.length)).toEqual([62, 63]);
    for (const table of ["history", "webhook_event"])
      await runSql(`DELETE FROM ${table} WHERE application_id = ?1`, id);
    // The log does not know which events D1 has.
    await runSql("UPDATE application_head SET entry = 'unknown' WHERE application_id = ?1", id);
    let batches = 0;
    await aroundObjectD1(application, () => (statements, send) => {
      if (isAbout(statements, ENTRY)) batches++;
      return send();
    });
    await reconcile(application, { republish: true });
    expect(batches).toBeLessThan(20);
    await ring(application);
    expect(await read()).toEqual(before);
    await expectInSync(application);
  });

  it("a republication grows the range in D1 as far as numbers were drawn", async () => {
    const application = await createApplication({ size: 1 });
    const { id, lastNumber } = application;
    await issueTo(application, "phone-1", "alice");
    await runSql("UPDATE application SET last_number = last_number + 1 WHERE id = ?1", id);
    moveClock(DAY);
    expect(await issueTo(application, "phone-2", "bob")).toBe(String(lastNumber + 1));
    await runSql("UPDATE application SET last_number = ?2 WHERE id = ?1", id, lastNumber);
    await reconcile(application, { republish: true });
    const { results } = await runSql("SELECT last_number FROM application WHERE id = ?1", id);
    expect(results).toEqual([{ last_number: lastNumber + 1 }]);
  });

  it("a republication that D1 does not begin changes nothing, and calls continue", async () => {
    const { application, number } = await withBadge();
    let isAway = true;
    await aroundObjectD1(
      application,
      () => (statements, send) => (isAway && isAbout(statements, ENTRY) ? Promise.reject(LOST) : send()),
    );
    await reconcile(application, { republish: true }).catch(() => {});
    isAway = false;
    expect((await takeStep(application, number, "suspend")).status).toBe(200);
    await expectInSync(application);
  });

  it("a republication that failed leaves D1 known, though its first batch comes late", async () => {
    const { application, number } = await withBadge();
    let late: (() => Promise<unknown>) | undefined;
    await aroundNext(application, "DELETE FROM status_list", async (_, send) => {
      late = send;
      throw LOST;
    });
    await reconcile(application, { republish: true }).catch(() => {});
    await runSql("DELETE FROM script_command WHERE recipient = ?1", application.id);
    await wake(application);
    await expect(late?.()).rejects.toThrow("NOT NULL constraint failed: application_head.sequence");
    await endAllocator(application);
    expect((await takeStep(application, number, "suspend")).status).toBe(200);
    await expectInSync(application);
  });

  it("a republication continues when the response of a step is lost", async () => {
    const { application } = await restoredTooFar();
    let batches = 0;
    await aroundObjectD1(application, () => async (statements, send) => {
      const sent = await send();
      if (isAbout(statements, ENTRY) && ++batches % 2 === 1) throw new Error("D1_ERROR: the response is lost");
      return sent;
    });
    expect(await reconcile(application, { republish: true })).toMatchObject({ republished: true });
    await expectInSync(application);
  });
});

describe("`reconcile --verify` (contract section 21)", () => {
  it("`reconcile --verify` lists every row that differs, and --republish removes the differences", async () => {
    const application = await createApplication();
    const { id, lastNumber } = application;
    const changed = Number(await issueTo(application, "phone", "alice"));
    const missing = Number(await issueTo(application, "tablet", "alice"));
    await callServer(application, "PATCH", "/v1/users/mallory/block");
    await runSql("UPDATE badge SET state = 'suspended', metadata = '{}' WHERE number = ?1", changed);
    await runSql("DELETE FROM badge WHERE number = ?1", missing);
    const extra = [changed, missing].includes(lastNumber) ? lastNumber - 1 : lastNumber;
    await runSql("INSERT INTO freed_number (number, freed_at, application_id) VALUES (?1, 1, ?2)", extra, id);
    // Another application's row under the same key is not this one's.
    await runSql("UPDATE blocked_user SET application_id = 'app_foreign' WHERE application_id = ?1", id);
    await invite(application, new Date(Date.now() + HOUR).toISOString());
    await runSql("DELETE FROM invitation WHERE application_id = ?1", id);
    expect(await reconcile(application, { verify: true })).toMatchObject({
      state: "in-sync",
      differences: {
        count: 5,
        first: [
          { table: "badge", key: changed, problem: "different", columns: ["metadata", "state"] },
          { table: "badge", key: missing, problem: "only in the allocator" },
          { table: "invitation", key: expect.any(String), problem: "only in the allocator" },
          { table: "blockedUser", key: "mallory", problem: "only in the allocator" },
          { table: "freedNumber", key: extra, problem: "only in D1" },
        ],
      },
    });
    const repaired = await reconcile(application, { verify: true, republish: true });
    expect(repaired).toMatchObject({ republished: true, differences: { count: 0 } });
    await expectInSync(application);
  });

  it("`reconcile --verify` counts all differences, and lists the first 100", async () => {
    const application = await crowded(101);
    await runSql("DELETE FROM badge WHERE application_id = ?1", application.id);
    const first = Array(100).fill({ table: "badge", problem: "only in the allocator" });
    expect(await reconcile(application, { verify: true })).toMatchObject({ differences: { count: 101, first } });
  });

  it("`reconcile` says which entry each side is at, and sends what D1 lacks", async () => {
    const { application, number } = await withBadge();
    const snapshot = await takeSnapshot(application);
    const { sequence } = await headOf(application);
    for (const step of ["suspend", "resume"] as const) await takeStep(application, number, step);
    await restore(application, snapshot);
    const result = await reconcile(application);
    expect(result).toMatchObject({
      state: "in-sync",
      ...{ allocator: sequence + 2, d1: sequence + 2 },
      logSince: Date.now(),
      differences: null,
    });
    expect(await stateOf(application, number)).toBe("active");
    await expectInSync(application);
  });
});
