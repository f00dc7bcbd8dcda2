import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { SEND_ENTRIES } from "../../src/shared/limits/allocator-limits.ts";
import { Alarms } from "../../src/worker/allocator/alarms.ts";
import { leaseEvents } from "../../src/worker/storage/webhook-events.ts";
import type { DeliveryMessage } from "../../src/worker/webhooks/delivery-message.ts";
import { block, issueTo, signOn, takeStep, withBadge } from "../badges/life-support.ts";
import { allocatorOf, aroundObjectD1, endAllocator, loseStorage, ring, wake } from "../support/allocator.ts";
import { createApplication } from "../support/application.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, useStandingClock } from "../support/clock.ts";
import { testContext } from "../support/context.ts";
import { isAbout, LOST } from "../support/faults.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { callServer, outcome, requestBadge } from "../support/http.ts";
import { claim, invite, revoke } from "../support/invitations.ts";
import { log } from "../support/log.ts";
import { objectsSendTo, queueThat } from "../support/queue.ts";
import { restore, takeSnapshot } from "../support/restoration.ts";
import { badgeRows, eventRows } from "../support/rows.ts";
import {
  aroundNextEntry,
  ENTRY,
  expectInSync,
  headOf,
  login,
  loseResponse,
  putCommand,
  restoreAndTell,
  resultOf,
  sequenceOf,
  stateOf,
} from "./support.ts";

useStandingClock();

/** D1 was restored to before the revocation of alice's badge on "phone", and nobody has told the allocator. */
async function withLostRevocation() {
  const { application, number } = await withBadge();
  const snapshot = await takeSnapshot(application);
  await takeStep(application, number, "revoke");
  await restore(application, snapshot);
  return { application, number };
}

describe("D1 restored to an earlier moment, and comparisons with it (contract section 21)", () => {
  it("a restored D1 gets back everything that responses have reported, without a command", async () => {
    const application = await createApplication();
    const kept = await issueTo(application, "phone-1", "alice");
    const { token } = await invite(application);
    const revoked = await invite(application);
    const snapshot = await takeSnapshot(application);
    await claim(application, "phone-2", "bob", token);
    const late = await issueTo(application, "phone-3", "carol");
    await takeStep(application, late, "revoke");
    await takeStep(application, kept, "suspend");
    await callServer(application, "PATCH", `/v1/badges/${kept}`, { expiresAt: ahead(HOUR) });
    await revoke(application, revoked.token);
    await block(application, "mallory");
    const before = await takeSnapshot(application);
    await restore(application, snapshot);
    expect(await stateOf(application, kept)).toBe("active");
    await wake(application, true);
    const after = await takeSnapshot(application);
    before.delete("webhook_event");
    for (const [table, rows] of before) expect(after.get(table), table).toEqual(rows);
    expect(outcome(await claim(application, "other", "eve", token))).toBe("409 CLAIMED_INVITATION");
    expect(outcome(await login(application, "phone", "mallory"))).toBe("403 BLOCKED_USER");
    await expectInSync(application);
  });

  it("no event that a restored D1 gets again names a person whom a later entry erases (section 24)", async () => {
    const application = await createApplication({ webhookUrl: "https://receiver.example/" });
    const snapshot = await takeSnapshot(application);
    await requestBadge(application, "phone", { userId: "alice", metadata: { osName: "Alice's" } });
    const other = await issueTo(application, "phone-2", "bob");
    for (let step = 0; step < SEND_ENTRIES; step++) {
      await takeStep(application, other, step % 2 === 0 ? "suspend" : "resume");
    }
    expect(outcome(await callServer(application, "PATCH", "/v1/users/alice/erase"))).toBe("200");
    const sent: string[] = [];
    const { db, now } = testContext().context;
    const consume = async ({ applicationId, eventId }: DeliveryMessage) => {
      moveClock(1);
      const { events } = await leaseEvents(db, [{ applicationId, eventId }], { now: now(), random: 0 });
      sent.push(...events.map(({ payload }) => payload));
    };
    objectsSendTo(queueThat(consume));
    await restoreAndTell(application, snapshot);
    for (const { id } of await eventRows(application)) await consume({ applicationId: application.id, eventId: id });
    expect(sent.length).toBeGreaterThan(0);
    expect(sent.join()).not.toMatch(/alice|Alice's/);
  });

  it("readers of a restored D1 get 503 also while it refuses the entries that it lacks", async () => {
    const { application } = await withLostRevocation();
    let isRefusing = true;
    await aroundObjectD1(application, () => async (statements, send) => {
      if (isRefusing && isAbout(statements, ENTRY)) throw new Error("D1_ERROR: no such table: history: SQLITE_ERROR");
      return send();
    });
    await Promise.resolve(wake(application, true)).catch(() => {});
    expect(outcome(await signOn(application, "phone"))).toBe("503 UNAVAILABLE");
    isRefusing = false;
    await wake(application, true);
    expect(outcome(await signOn(application, "phone"))).toBe("403 REVOKED_BADGE");
    await expectInSync(application);
  });

  it.each([
    ["the application's first call", async () => {}],
    ["its allocator lost its storage", loseStorage],
  ])("a D1 that is restored to a moment before %s gets everything back", async (_, lose) => {
    const application = await createApplication();
    const earlier = lose === loseStorage ? await issueTo(application, "phone-1", "alice") : undefined;
    const snapshot = await takeSnapshot(application);
    await lose(application);
    // Also if the response of the copy's first batch is lost.
    await aroundNextEntry(application, loseResponse);
    await wake(application);
    await wake(application);
    moveClock(MINUTE);
    const later = await issueTo(application, "phone-2", "bob");
    await restoreAndTell(application, snapshot);
    for (const number of [earlier, later]) if (number) expect(await stateOf(application, number)).toBe("active");
    await expectInSync(application);
  });

  it("a restored D1 gets back the counts of badges issued on days that have ended since (contract section 19)", async () => {
    const application = await createApplication();
    for (const udid of ["phone-1", "phone-2"]) await issueTo(application, udid, "alice");
    const snapshot = await takeSnapshot(application);
    moveClock(DAY);
    await issueTo(application, "phone-3", "alice");
    await restoreAndTell(application, snapshot);
    const { pastDays, statistics } = await headOf(application);
    expect(pastDays).toEqual({ [statistics.newBadges.day - 1]: 2 });
    expect(statistics.newBadges.count).toBe(1);
  });

  it("the next change notices a restore before its response, so that no number has two owners", async () => {
    const application = await createApplication({ size: 3 });
    const first = await issueTo(application, "phone-1", "alice");
    const snapshot = await takeSnapshot(application);
    const second = await issueTo(application, "phone-2", "bob");
    await restore(application, snapshot);
    const third = await issueTo(application, "phone-3", "carol");
    expect(new Set([first, second, third]).size).toBe(3);
    expect(outcome(await login(application, "phone-2", "bob"))).toBe("200");
    await expectInSync(application);
  });

  it("a restore to the entry before a batch with a lost response is noticed, and the lost event is due again", async () => {
    objectsSendTo(queueThat(() => {}));
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges" });
    await issueTo(application, "phone-1", "alice");
    const [kept] = await eventRows(application);
    const snapshot = await takeSnapshot(application);
    await aroundNextEntry(application, loseResponse);
    await issueTo(application, "phone-2", "bob");
    await restoreAndTell(application, snapshot);
    const lost = (await eventRows(application)).filter(({ id }) => id !== kept?.id);
    expect(lost).toMatchObject([{ dueAt: expect.any(Number) }]);
    await expectInSync(application);
  });

  it("the alarm notices a restore also when D1 failed at the first comparison", async () => {
    const { application, number } = await withLostRevocation();
    let isAway = true;
    await aroundObjectD1(application, () => (_, send) => (isAway ? Promise.reject(LOST) : send()));
    await wake(application, true).catch(() => {});
    await ring(application);
    isAway = false;
    expect(await runDurableObjectAlarm(allocatorOf(application))).toBe(true);
    expect(await stateOf(application, number)).toBe("revoked");
  });

  it("a new instance compares itself with D1 before it decides anything", async () => {
    const { application, number } = await withLostRevocation();
    await endAllocator(application);
    // It changes nothing, so no batch would have told.
    expect((await takeStep(application, number, "revoke")).status).toBe(200);
    expect(await stateOf(application, number)).toBe("revoked");
  });

  it("D1 restored forward again has what it had", async () => {
    const { application, number } = await withBadge();
    const snapshot = await takeSnapshot(application);
    await takeStep(application, number, "suspend");
    const later = await takeSnapshot(application);
    await restoreAndTell(application, snapshot);
    await takeStep(application, number, "resume");
    await restoreAndTell(application, later);
    expect(await stateOf(application, number)).toBe("active");
    await expectInSync(application);
  });

  it("a restored D1 gets back the signing key of the first badge with it, and the range as far as numbers were drawn", async () => {
    const application = await createApplication({ size: 1 });
    const { id, lastNumber } = application;
    await wake(application);
    const snapshot = await takeSnapshot(application);
    await issueTo(application, "phone-1", "alice");
    await runSql("UPDATE application SET last_number = ?2 WHERE id = ?1", id, lastNumber + 1);
    moveClock(MINUTE);
    const second = await issueTo(application, "phone-2", "alice");
    await restore(application, new Map([...snapshot, ["signing_key", []]]));
    await runSql("UPDATE application SET last_number = ?2 WHERE id = ?1", id, lastNumber);
    await wake(application, true);
    const row = await homeDatabase().prepare("SELECT last_number FROM application WHERE id = ?1").bind(id).first();
    expect([second, row]).toEqual([String(lastNumber + 1), { last_number: lastNumber + 1 }]);
    expect((await signOn(application, "phone-2")).status).toBe(200);
    await expectInSync(application);
  });

  it.each([
    ["are pending again, and due", "https://hooks.example/badges", "pending"],
    ["wait as `held` where the URL of their time is gone", null, "held"],
  ])("a restored D1 has its webhook events again, which %s", async (_, url, state) => {
    objectsSendTo(queueThat(() => {}));
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges" });
    await wake(application);
    const snapshot = await takeSnapshot(application);
    await issueTo(application, "phone", "alice");
    const [event] = await eventRows(application);
    expect(event).toMatchObject({ state: "pending", dueAt: null });
    await restore(application, snapshot);
    await runSql("UPDATE application SET webhook_url = ?2 WHERE id = ?1", application.id, url);
    await wake(application, true);
    const again = await eventRows(application);
    expect(again).toMatchObject([{ id: event?.id, payload: event?.payload, state, dueAt: expect.any(Number) }]);
  });

  it("a restore between a comparison's read and its response is noticed when the tick tells the allocator meanwhile", async () => {
    const { application, number } = await withBadge();
    const snapshot = await takeSnapshot(application);
    await takeStep(application, number, "revoke");
    await endAllocator(application);
    const released = Promise.withResolvers<void>();
    let isHeld = false;
    await aroundObjectD1(application, () => async (statements, send) => {
      const result = await send();
      if (isHeld || !/^select.*from "application_head"/i.test(statements[0]?.sql ?? "")) return result;
      isHeld = true;
      await released.promise;
      return result;
    });
    // A wake-up may fail, because the other one has made D1 doubtful again; then the tick repeats it.
    const tell = () => vi.waitFor(() => wake(application, true));
    const first = tell();
    await vi.waitUntil(() => isHeld);
    await restore(application, snapshot);
    const second = tell();
    await scheduler.wait(20);
    released.resolve();
    await Promise.all([first, second]);
    expect(outcome(await signOn(application, "phone"))).toBe("403 REVOKED_BADGE");
    await expectInSync(application);
  });

  it("a comparison does not take an entry that was not sent yet for one that D1 has lost", async () => {
    const { application, number } = await withBadge();
    let woken: Promise<void> | undefined;
    const ensure = vi.spyOn(Alarms.prototype, "ensureComparison").mockImplementationOnce(async () => {
      // The step is logged, and its batch not sent.
      woken = wake(application, true);
      await scheduler.wait(20);
    });
    expect((await takeStep(application, number, "suspend")).status).toBe(200);
    ensure.mockRestore();
    await woken;
    expect(woken).toBeDefined();
    const marked = await runInDurableObject(allocatorOf(application), (_, { storage }) =>
      storage.sql.exec("SELECT sequence FROM entry WHERE is_resent").toArray(),
    );
    expect(marked).toEqual([]);
    await expectInSync(application);
  });

  it("the log keeps entries that were sent again for 31 more days, so that another restore gets them back", async () => {
    const application = await createApplication();
    await wake(application);
    const snapshot = await takeSnapshot(application);
    const numbers = [await issueTo(application, "phone-1", "alice"), await issueTo(application, "phone-2", "bob")];
    for (let restores = 0; restores < 2; restores++) {
      moveClock(30 * DAY);
      await ring(application);
      await restoreAndTell(application, snapshot);
      expect((await badgeRows(application)).map(({ number }) => String(number)).toSorted()).toEqual(numbers.toSorted());
    }
    await expectInSync(application);
  });
});

describe("while a restored D1 is behind (contract section 21)", () => {
  /** More changes than one batch sends, of which D1 has none any more; the second batch waits until it is let through. */
  async function recovering() {
    const { application, number } = await withBadge();
    const other = await issueTo(application, "tablet", "bob");
    const snapshot = await takeSnapshot(application);
    for (let change = 0; change < SEND_ENTRIES / 2 + 1; change++) {
      for (const step of ["suspend", "resume"] as const) await takeStep(application, other, step);
    }
    await takeStep(application, number, "suspend");
    await restore(application, snapshot);
    const gate = Promise.withResolvers<void>();
    let batches = 0;
    await aroundObjectD1(application, () => async (statements, send) => {
      if (isAbout(statements, ENTRY) && ++batches === 2) await gate.promise;
      return send();
    });
    const recovered = wake(application, true);
    recovered.catch(() => {});
    while (batches < 2) await scheduler.wait(1);
    return { application, number, snapshot, goOn: () => gate.resolve(), recovered };
  }

  it("while a restored D1 is behind, logins and signatures get 503, lists can be read, and a change waits", {
    timeout: 60_000,
  }, async () => {
    const { application, number, goOn, recovered } = await recovering();
    expect((await headOf(application)).readableFrom).toBeGreaterThan(await sequenceOf(application));
    for (const answer of [await login(application, "phone"), await signOn(application, "phone")]) {
      expect([outcome(answer), answer.headers.has("retry-after")]).toEqual(["503 UNAVAILABLE", true]);
    }
    expect((await callServer(application, "GET", "/v1/badges")).status).toBe(200);
    const revoked = takeStep(application, number, "revoke");
    goOn();
    await recovered;
    expect((await revoked).status).toBe(200);
    expect(outcome(await signOn(application, "phone"))).toBe("403 REVOKED_BADGE");
    await expectInSync(application);
  });

  it("a D1 that is restored once more keeps the higher flag, and another instance continues", {
    timeout: 60_000,
  }, async () => {
    const { application, snapshot, recovered } = await recovering();
    const flag = (await headOf(application)).readableFrom;
    await endAllocator(application);
    await recovered.catch(() => {});
    expect((await headOf(application)).readableFrom).toBe(flag);
    await wake(application, true);
    await expectInSync(application);
    await restoreAndTell(application, snapshot);
    await expectInSync(application);
  });
});

describe("the script's commands (contract section 21)", () => {
  it("script commands are carried out in their order, each once", async () => {
    const application = await createApplication();
    const number = Number(await issueTo(application, "phone", "alice"));
    const commands = [];
    for (const kind of ["suspend", "resume", "suspend"] as const) {
      commands.push(await putCommand(application, { kind, number }));
      moveClock(1000);
    }
    await Promise.all([wake(application), wake(application)]);
    const results = await Promise.all(commands.map(resultOf));
    expect(results).toMatchObject(["suspended", "active", "suspended"].map((state) => ({ badge: { state } })));
    const { lastChange } = await headOf(application);
    await wake(application);
    expect((await headOf(application)).lastChange).toBe(lastChange);
  });

  it("two wake-ups, one of them slow, carry out a script command once, and undo no later call", async () => {
    const application = await createApplication();
    await putCommand(application, { kind: "block", userId: "bob" });
    moveClock(1000);
    const command = await putCommand(application, { kind: "block", userId: "alice" });
    const gate = Promise.withResolvers<void>();
    let reads = 0;
    let hasBegun = false;
    await aroundObjectD1(application, () => async (statements, send) => {
      hasBegun ||= isAbout(statements, "INSERT INTO blocked_user");
      // What the other wake-up reads if it has found both commands open, too.
      if (isAbout(statements, "from application_secret") && ++reads === 2 && !hasBegun) await gate.promise;
      return send();
    });
    const wakes = [wake(application), wake(application)];
    await Promise.race(wakes);
    expect(await resultOf(command)).toMatchObject({ kind: "user", userId: "alice" });
    expect((await callServer(application, "PATCH", "/v1/users/alice/unblock")).status).toBe(200);
    moveClock(MINUTE);
    gate.resolve();
    await Promise.all(wakes);
    expect((await login(application, "phone")).status).toBe(201);
  });

  it("script commands are not carried out again after a restore of D1, and undo no later call", async () => {
    const { application, number } = await withBadge();
    const command = await putCommand(application, { kind: "suspend", number: Number(number) });
    const snapshot = await takeSnapshot(application);
    await wake(application);
    expect((await takeStep(application, number, "resume")).status).toBe(200);
    await restore(application, snapshot);
    expect(await resultOf(command)).toBeNull();
    await wake(application, true);
    expect(await stateOf(application, number)).toBe("active");
    expect(await resultOf(command)).toMatchObject({ kind: "badge", badge: { state: "suspended" } });
  });

  it("script commands older than an hour are not carried out, because only a restore can have brought them back", async () => {
    const { application, number } = await withBadge();
    const command = await putCommand(application, { kind: "suspend", number: Number(number) });
    await runSql("UPDATE script_command SET created_at = created_at - 3600001 WHERE id = ?1", command);
    await wake(application);
    expect([await stateOf(application, number), await resultOf(command)]).toEqual(["active", null]);
  });

  it("script commands that cannot be read fail, and others are carried out", async () => {
    const application = await createApplication();
    const number = Number(await issueTo(application, "phone", "alice"));
    const unreadable = await putCommand(application, { kind: "suspend", number });
    await runSql("UPDATE script_command SET command = '{}' WHERE id = ?1", unreadable);
    const next = await putCommand(application, { kind: "suspend", number });
    await wake(application);
    expect(await resultOf(unreadable)).toEqual({ kind: "failed" });
    expect(await resultOf(next)).toMatchObject({ kind: "badge" });
    expect(log.lines()).toContainEqual(expect.objectContaining({ event: "command-unreadable", command: unreadable }));
  });
});
