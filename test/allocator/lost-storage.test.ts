import { describe, expect, it } from "vitest";
import { COPY_PAGE_ROWS } from "../../src/shared/limits/allocator-limits.ts";
import { block, issueTo, takeStep, withBadge } from "../badges/life-support.ts";
import { alarmOf, aroundObjectD1, endAllocator, loseStorage, ring, wake } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { isAbout, LOST } from "../support/faults.ts";
import { HeldTrips } from "../support/held.ts";
import { runSql } from "../support/home.ts";
import { callServer, outcome } from "../support/http.ts";
import { claim, invite, revoke } from "../support/invitations.ts";
import { restore, takeSnapshot } from "../support/restoration.ts";
import { badgeRows } from "../support/rows.ts";
import { isSettled } from "../support/timers.ts";
import {
  aroundNext,
  crowded,
  ENTRY,
  expectInSync,
  headOf,
  login,
  putCommand,
  reconcile,
  resultOf,
  stateOf,
} from "./support.ts";

const changesOf = (application: TestApplication, cursor: string) =>
  callServer(application, "GET", `/v1/changes?cursor=${cursor}`);

describe("an allocator that lost its storage (contract section 21)", () => {
  it("an allocator that lost its storage reads its rows and counters from D1, and uses nothing twice", async () => {
    const application = await createApplication({ size: 9 });
    const kept = [await issueTo(application, "phone-1", "alice"), await issueTo(application, "phone-2", "bob")];
    const [freed, pending] = [await invite(application), await invite(application)];
    await revoke(application, freed.token);
    await block(application, "mallory");
    await takeStep(application, String(kept[0]), "suspend");
    await loseStorage(application);
    await wake(application);
    await expectInSync(application);
    expect(outcome(await login(application, "phone", "mallory"))).toBe("403 BLOCKED_USER");
    expect(await stateOf(application, String(kept[0]))).toBe("suspended");
    const claimed = await claim(application, "phone-3", "carol", pending.token);
    expect(Number(claimed.body.badgeId)).toBe(pending.number);
    const issued = [...kept, String(claimed.body.badgeId)];
    for (let count = 0; count < 6; count++) issued.push(await issueTo(application, `phone-${count + 4}`, "dave"));
    expect(new Set(issued).size).toBe(9);
    expect(outcome(await login(application, "last", "dave"))).toBe("503 NUMBERS_EXHAUSTED");
    const rows = await badgeRows(application);
    expect(new Set(rows.map(({ ordinal }) => ordinal)).size).toBe(9);
    expect(new Set(rows.map(({ change }) => change)).size).toBe(9);
    await expectInSync(application);
    // Also the first and the last number of the range.
    await loseStorage(application);
    await wake(application);
    await expectInSync(application);
  });

  it("a call that began before the allocator had its rows gets 503, because the lost instance may have decided it", async () => {
    const application = await createApplication();
    await issueTo(application, "phone-1", "alice");
    await loseStorage(application);
    const startedAt = Date.now();
    const refused = await login(application, "phone-2", "bob");
    // It does not wait for its deadline, after nine seconds.
    expect(Date.now() - startedAt).toBeLessThan(8000);
    expect([outcome(refused), refused.headers.has("retry-after")]).toEqual(["503 UNAVAILABLE", true]);
    expect(await badgeRows(application)).toHaveLength(1);
    expect((await login(application, "phone-2", "bob")).status).toBe(201);
  });

  it("the cursors of the changes feed expire when an allocator lost its storage (section 13)", async () => {
    const { application } = await withBadge();
    const { headers } = await callServer(application, "GET", "/v1/changes");
    const cursor = headers.get("pagination-cursor") ?? "";
    expect((await changesOf(application, cursor)).status).toBe(200);
    await loseStorage(application);
    await wake(application);
    expect(outcome(await changesOf(application, cursor))).toBe("410 EXPIRED_CURSOR");
  });

  it("a cursor of the changes feed outlives a restore to before its epoch: meanwhile calls get 503 (section 13)", async () => {
    const { application } = await withBadge();
    const { headers } = await callServer(application, "GET", "/v1/changes");
    const cursor = headers.get("pagination-cursor") ?? "";
    const setHead = (columns: string) =>
      runSql(`UPDATE application_head SET ${columns} WHERE application_id = ?1`, application.id);
    await setHead("readable_from = 1000, epoch = 'earlier ' || epoch");
    expect(outcome(await changesOf(application, cursor))).toBe("503 UNAVAILABLE");
    await setHead("readable_from = 0, epoch = substr(epoch, 9)");
    expect((await changesOf(application, cursor)).status).toBe(200);
  });

  it("readers can read again when an allocator lost its storage, whatever flag it had set", async () => {
    const { application } = await withBadge();
    await runSql("UPDATE application_head SET readable_from = 1000 WHERE application_id = ?1", application.id);
    await loseStorage(application);
    await wake(application);
    expect((await headOf(application)).readableFrom).toBe(0);
  });

  it("the allocator moves D1's head before it reads, so that writes of the lost instance change nothing", async () => {
    const { application, number } = await withBadge();
    const held = new HeldTrips(ENTRY);
    await aroundObjectD1(application, () => held.around);
    const suspended = takeStep(application, number, "suspend");
    while (held.count === 0) await scheduler.wait(1);
    await loseStorage(application);
    await wake(application);
    await expect(held.letThrough()).rejects.toThrow("application_head.sequence");
    // The call was repeated: it began before the copy.
    expect((await suspended).status).toBe(503);
    expect(await stateOf(application, number)).toBe("active");
    await expectInSync(application);
  });

  it("the allocator skips numbers on demand that it may have issued if D1 was restored as well, once for one command", async () => {
    const application = await createApplication({ size: 5 });
    const snapshot = await takeSnapshot(application);
    const lost = [await issueTo(application, "phone-1", "alice"), await issueTo(application, "phone-2", "bob")];
    await restore(application, snapshot);
    await loseStorage(application);
    await wake(application);
    const { lastChange } = await headOf(application);
    let losses = 0;
    await aroundObjectD1(application, () => async (statements, send) => {
      const isResult = statements.some(({ sql }) => sql.includes('"script_command" SET "result"'));
      if (!isResult || losses === 3) return send();
      losses++;
      if (isAbout(statements, ENTRY)) await send();
      throw LOST;
    });
    const command = { kind: "reconcile", verify: true, republish: false, skip: 3 } as const;
    const id = await putCommand(application, command);
    for (let tries = 0; tries < 3; tries++) await Promise.resolve(wake(application)).catch(() => {});
    expect(losses).toBeGreaterThan(0);
    expect(await resultOf(id)).toMatchObject({ state: "in-sync", skipped: 3, differences: { count: 0 } });
    expect((await headOf(application)).lastChange).toBe(lastChange + 3);
    const statistics = () => callServer(application, "GET", "/v1/stats");
    expect((await statistics()).body).toMatchObject({ numbers: { left: 2 } });
    const issued = [await issueTo(application, "phone-3", "carol"), await issueTo(application, "phone-4", "dave")];
    expect((await statistics()).body).toMatchObject({ numbers: { left: 0, usedPercent: 100 } });
    expect(issued.filter((number) => lost.includes(number))).toEqual([]);
    expect(outcome(await login(application, "watch", "bob"))).toBe("503 NUMBERS_EXHAUSTED");
    const before = await headOf(application);
    await putCommand(application, { ...command, skip: 10_000 });
    await wake(application);
    // The range has five ordinals; a badge may have any number of changes.
    const after = await headOf(application);
    expect([after.lastOrdinal - before.lastOrdinal, after.lastChange - before.lastChange]).toEqual([5, 10_000]);
    await expectInSync(application);
  });
});

describe("the copy of many rows (contract section 21)", () => {
  const BADGES = 2 * COPY_PAGE_ROWS + 10;

  /** D1 has rows, and the allocator has none: it lost its storage. */
  const withoutRows = () => crowded(BADGES, { columns: { metadata: null }, isTakenOver: false });

  it("copying many rows takes several pages, and continues where an instance ended", async () => {
    const application = await withoutRows();
    let pages = 0;
    const watch = (dies: number) =>
      aroundObjectD1(application, (state) => async (statements, send) => {
        if (!isAbout(statements, "from badge")) return send();
        const page = await send();
        pages++;
        if (pages !== dies) return page;
        await state.storage.sync();
        state.abort("the allocator ends");
        return new Promise(() => {});
      });
    await watch(3);
    await expect(Promise.resolve(wake(application))).rejects.toThrow();
    expect(pages).toBe(3);
    await watch(0);
    await wake(application);
    // One page more than without the end; the first one only shows that there are more.
    expect(pages).toBeLessThanOrEqual(6);
    await expectInSync(application);
  });

  it("copying rows starts again when D1's head is moved meanwhile", async () => {
    const application = await withoutRows();
    const moveHead = () =>
      runSql("UPDATE application_head SET entry = 'other' WHERE application_id = ?1", application.id);
    await aroundNext(application, "from badge", (_, send) => moveHead().then(send), 2);
    await wake(application);
    expect((await headOf(application)).sequence).toBe(2);
    await expectInSync(application);
  });

  it("the allocator decides nothing before it has copied the last page", async () => {
    const application = await withoutRows();
    const held = new HeldTrips("from badge");
    await aroundNext(application, "from badge", held.around, 3);
    const woken = wake(application).catch(() => {});
    while (held.count === 0) await scheduler.wait(1);
    const call = login(application, "phone");
    expect(await isSettled(call)).toBe(false);
    await endAllocator(application);
    await woken;
    expect((await call).status).toBe(503);
    expect((await login(application, "phone")).status).toBe(201);
    await expectInSync(application);
  });

  it("a republication during an interrupted copy changes nothing, and is carried out after the copy", async () => {
    const application = await withoutRows();
    const { id } = application;
    const move = (from: string, to: string) =>
      runSql("UPDATE application_head SET application_id = ?2 WHERE application_id = ?1", from, to);
    // D1 does not know the application, so an administrator has to decide.
    await move(id, "app_away");
    await wake(application);
    await move("app_away", id);
    await aroundNext(application, "from signing_key", () => Promise.reject(LOST), 3);
    await expect(reconcile(application, { republish: true })).rejects.toThrow("D1 is unavailable");
    expect(await badgeRows(application)).toHaveLength(BADGES);
    await wake(application);
    expect(await badgeRows(application)).toHaveLength(BADGES);
    await expectInSync(application);
  });

  it("the alarm continues a copy that a failure of D1 interrupted", async () => {
    const application = await withoutRows();
    let isAway = true;
    await aroundObjectD1(application, () => (_, send) => (isAway ? Promise.reject(LOST) : send()));
    await wake(application).catch(() => {});
    isAway = false;
    expect(await alarmOf(application)).not.toBeNull();
    await ring(application);
    await expectInSync(application);
  });
});
