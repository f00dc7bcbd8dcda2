import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { CATCH_UP_ENTRIES, JOURNAL_PRUNE_ENTRIES } from "../../src/shared/limits.ts";
import { block, getBadge, issueTo, takeStep } from "../badges/life-support.ts";
import { claim, invite, outcome } from "../invitations/support/calls.ts";
import { DAY, MINUTE, moveClock, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { allocatorOf, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { isAbout } from "../support/faults.ts";
import { homeDatabase } from "../support/home.ts";
import { requestBadge } from "../support/http.ts";
import { restore, takeSnapshot } from "../support/restoration.ts";
import { badgeRows } from "../support/rows.ts";
import {
  ENTRY,
  type JournalRow,
  loseStorage,
  putIntoInbox,
  readJournal,
  restoreJournal,
  resultOf,
  sequenceOf,
  wake,
} from "./support.ts";

const log = useQuietLog();
useStandingClock();

const stateOf = async (application: TestApplication, number: string) =>
  (await getBadge(application, number)).body.state;

const gaps = (application: TestApplication) =>
  log.lines().filter((line) => line.event === "journal-gap" && line.application === application.id);

describe("D1 restored to an earlier moment (contract section 21)", () => {
  it("gets back what it forgot, without a command: badges, claims, revocations, blocks", async () => {
    const application = await createApplication();
    const kept = await issueTo(application, "phone-1", "alice");
    const { token, number } = await invite(application);
    const snapshot = await takeSnapshot(application);
    await claim(application, "phone-2", "bob", token);
    const late = await issueTo(application, "phone-3", "carol");
    await takeStep(application, late, "revoke");
    await takeStep(application, kept, "suspend");
    await block(application, "mallory");
    const before = await takeSnapshot(application);
    await restore(application, snapshot);
    expect(await stateOf(application, kept)).toBe("active");
    await wake(application, true);
    const after = await takeSnapshot(application);
    for (const table of ["badge", "invitation", "blocked_user", "position", "history", "signing_key"]) {
      expect(after.get(table), table).toEqual(before.get(table));
    }
    expect(await stateOf(application, String(number))).toBe("active");
    expect(await stateOf(application, late)).toBe("revoked");
    expect(outcome(await claim(application, "other", "eve", token))).toBe("409 CLAIMED_INVITATION");
    expect(outcome(await requestBadge(application, "phone", { userId: "mallory" }))).toBe("403 BLOCKED_USER");
  });

  it("is noticed by the next call before it is decided: no number has two owners", async () => {
    const application = await createApplication({ size: 3 });
    const first = await issueTo(application, "phone-1", "alice");
    const snapshot = await takeSnapshot(application);
    const second = await issueTo(application, "phone-2", "bob");
    await restore(application, snapshot);
    const third = await issueTo(application, "phone-3", "carol");
    expect(new Set([first, second, third]).size).toBe(3);
    expect(outcome(await requestBadge(application, "phone-2", { userId: "bob" }))).toBe("200");
    expect(await badgeRows(application)).toHaveLength(3);
  });

  it("is noticed by the object's alarm, however short before the last write", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    moveClock(2 * MINUTE - 1);
    const snapshot = await takeSnapshot(application);
    await takeStep(application, number, "revoke");
    moveClock(1);
    await runDurableObjectAlarm(allocatorOf(application));
    await restore(application, snapshot);
    moveClock(2 * MINUTE);
    expect(await runDurableObjectAlarm(allocatorOf(application))).toBe(true);
    expect(await stateOf(application, number)).toBe("revoked");
  });

  it("survives an object that ends on the way", async () => {
    const application = await createApplication();
    const snapshot = await takeSnapshot(application);
    const number = await issueTo(application, "phone", "alice");
    await takeStep(application, number, "revoke");
    await restore(application, snapshot);
    await evictDurableObject(allocatorOf(application));
    await wake(application, true);
    expect(await stateOf(application, number)).toBe("revoked");
  });
});

describe("D1 restored twice within 31 days (contract section 21)", () => {
  it("gets back what the journal had to keep longer, also if the object died between two chunks the first time", async () => {
    const application = await createApplication();
    const first = await takeSnapshot(application);
    const numbers: string[] = [];
    const issue = async () => void numbers.push(await issueTo(application, `phone-${numbers.length}`, "alice"));
    while (numbers.length < CATCH_UP_ENTRIES + 5) await issue();
    const last = await takeSnapshot(application);
    moveClock(30 * DAY);
    await restore(application, first);
    await endAfterChunk(application);
    const ask = async () => await wake(application, true);
    await expect(ask()).rejects.toThrow();
    expect(await sequenceOf(application)).toBe(CATCH_UP_ENTRIES);
    await restore(application, last);
    moveClock(10 * DAY);
    // Old entries are forgotten as new ones come.
    for (let count = 0; count < 4 * JOURNAL_PRUNE_ENTRIES; count++) await issue();
    await restore(application, first);
    for (let seconds = 0; seconds < 3; seconds++) await wake(application, true);
    expect(gaps(application)).toEqual([]);
    const rows = await badgeRows(application);
    expect(new Set(rows.map(({ number }) => String(number)))).toEqual(new Set(numbers));
  });
});

/** The object ends once D1 has applied the first chunk of what it had forgotten. */
async function endAfterChunk(application: TestApplication): Promise<void> {
  let isDone = false;
  await aroundObjectD1(application, (state) => async (statements, send) => {
    const sent = await send();
    if (isDone || !isAbout(statements, ENTRY)) return sent;
    isDone = true;
    await state.storage.sync();
    state.abort("the object dies");
    return new Promise(() => {});
  });
}

describe("an object that lost its storage", () => {
  it("goes on from D1's position: no number, list position or change number comes twice", async () => {
    const application = await createApplication();
    await issueTo(application, "phone-1", "alice");
    await issueTo(application, "phone-2", "bob");
    const sequence = await sequenceOf(application);
    expect((await positionOf(application)).journal_since).toBeNull();
    await loseStorage(application);
    await issueTo(application, "phone-3", "carol");
    // It says so in D1: its journal begins there, and no longer with the application.
    expect((await positionOf(application)).journal_since).toBe(Date.now());
    const rows = await badgeRows(application);
    expect(new Set(rows.map(({ position }) => position))).toEqual(new Set([1, 2, 3]));
    expect(new Set(rows.map(({ change }) => change)).size).toBe(3);
    expect(await sequenceOf(application)).toBe(sequence + 1);
    expect(gaps(application)).toEqual([]);
  });
});

describe("a write that an object sent before it lost its storage, and that comes late (contract section 21)", () => {
  it.each(["the next instance", "the one after it"])(
    "goes before what the object had told nobody yet: %s goes on",
    async (who) => {
      const application = await createApplication();
      const number = await issueTo(application, "phone-1", "alice");
      await loseStorage(application);
      await aroundObjectD1(application, (state) => async (statements, send) => {
        if (!isAbout(statements, ENTRY)) return send();
        await suspendAsLostInstance(application, number);
        if (who === "the next instance") return send();
        await state.storage.sync();
        state.abort("the object dies");
        return new Promise(() => {});
      });
      const ask = async () => outcome(await requestBadge(application, "phone-2", { userId: "bob" }));
      if (who === "the one after it") expect(await ask()).toBe("503 UNAVAILABLE");
      expect(await ask()).toBe("201");
      expect(await stateOf(application, number)).toBe("suspended");
      expect(gaps(application)).toEqual([]);
    },
  );
});

/** Once: what the object sent before, for the next place in the list. */
async function suspendAsLostInstance({ id }: TestApplication, number: string): Promise<void> {
  const d1 = homeDatabase();
  const place =
    "UPDATE position SET sequence = sequence + 1, entry = '-lost' WHERE application_id = ?1 AND entry <> '-lost'";
  const state = "UPDATE badge SET state = 'suspended' WHERE number = ?1";
  await d1.batch([d1.prepare(place).bind(id), d1.prepare(state).bind(Number(number))]);
}

describe("an object restored to an earlier moment (contract section 21)", () => {
  it("goes on from D1 when it had just kept an entry that D1 then refused, and another has that place", async () => {
    const application = await createApplication();
    const first = await issueTo(application, "phone-1", "alice");
    const sequence = await sequenceOf(application);
    let earlier: JournalRow[] | undefined;
    await aroundObjectD1(application, ({ storage }) => async (statements, send) => {
      if (earlier || !isAbout(statements, ENTRY)) return send();
      earlier = readJournal(storage);
      moveClock(1);
      throw new Error("D1_ERROR: NOT NULL constraint failed: position.entry: SQLITE_CONSTRAINT");
    });
    const second = await issueTo(application, "phone-2", "bob");
    expect(await sequenceOf(application)).toBe(sequence + 1);
    await restoreJournal(application, earlier ?? []);
    const third = await issueTo(application, "phone-3", "carol");
    expect(gaps(application)).toEqual([]);
    expect(new Set([first, second, third]).size).toBe(3);
    expect(await badgeRows(application)).toHaveLength(3);
  });
});

describe("more was lost than the journal has (contract section 21)", () => {
  it("is answered 503 and logged until the loss is accepted, and then goes on beyond all that either side knows", async () => {
    const application = await createApplication();
    await issueTo(application, "phone-1", "alice");
    const snapshot = await takeSnapshot(application);
    const lost = await issueTo(application, "phone-2", "bob");
    await loseStorage(application);
    const known = await issueTo(application, "phone-3", "carol");
    // D1 is behind, and the object that knew more has lost all but its last entry.
    await restore(application, snapshot);
    const before = await takeSnapshot(application);
    const ask = async () => outcome(await requestBadge(application, "phone-4", { userId: "dave" }));
    expect(await ask()).toBe("503 UNAVAILABLE");
    expect(await takeSnapshot(application)).toEqual(before);
    expect(gaps(application)).toMatchObject([{ level: "error", application: application.id }]);
    const asked = await putIntoInbox(application, { kind: "reconcile", acceptLoss: false, skip: 0 });
    await wake(application).catch(() => {});
    expect(await resultOf(asked)).toMatchObject({ kind: "gap" });
    expect(await ask()).toBe("503 UNAVAILABLE");

    const { epoch } = await positionOf(application);
    const accepted = await putIntoInbox(application, { kind: "reconcile", acceptLoss: true, skip: 10 });
    await wake(application).catch(() => {});
    expect(await resultOf(accepted)).toMatchObject({ kind: "loss-accepted", skipped: 10 });
    const next = await issueTo(application, "phone-4", "dave");
    expect([lost, known]).not.toContain(next);
    expect((await positionOf(application)).epoch).not.toBe(epoch);
    // The object knew of three badges, the last two of which D1 has lost.
    const found = (await badgeRows(application)).find(({ number }) => String(number) === next);
    expect(found?.position).toBeGreaterThan(3);
    expect(found?.change).toBeGreaterThan(3);
  });
});

const positionOf = async ({ id }: TestApplication): Promise<Record<string, unknown>> => {
  const row = await homeDatabase().prepare("SELECT * FROM position WHERE application_id = ?1").bind(id).first();
  return row ?? {};
};
