import { runInDurableObject } from "cloudflare:test";
import { decodeJwt } from "jose";
import { afterEach, describe, expect, it } from "vitest";
import type { Call } from "../../src/worker/allocator/commands.ts";
import { block, getBadge, issueTo, signOn, takeStep, unblock } from "../badges/life-support.ts";
import { inParallel, requestQuietly } from "../badges/support.ts";
import { claim, invite, outcome } from "../invitations/support/calls.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { allocatorOf, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { isAbout, LOST } from "../support/faults.ts";
import { HeldTrips } from "../support/held.ts";
import { runSql } from "../support/home.ts";
import type { Answer } from "../support/http.ts";
import { restore, takeSnapshot } from "../support/restoration.ts";
import { badgeRows } from "../support/rows.ts";
import { StandingTimers } from "../support/timers.ts";
import { until } from "../support/until.ts";
import { ENTRY, journalOf, LostEntries, sequenceOf, wake } from "./support.ts";

const log = useQuietLog();

let timers: StandingTimers | undefined;
afterEach(() => {
  timers?.stop();
  timers = undefined;
});

const stateOf = async (application: Parameters<typeof getBadge>[0], number: string) =>
  (await getBadge(application, number)).body.state;

/** Makes a call whose entry is on its way to D1 until it is answered 503, and later: until the test lets it through. */
async function answer503(application: { id: string }, call: () => Promise<Answer>): Promise<HeldTrips> {
  const held = new HeldTrips(ENTRY);
  await aroundObjectD1(application, () => held.around);
  timers = new StandingTimers();
  const refused = call();
  await timers.pass(10_000, () => held.count === 1);
  expect((await refused).status).toBe(503);
  return held;
}

describe("a call that is answered 503 (contract sections 1 and 21)", () => {
  it.each<[string, (application: TestApplication, lost: LostEntries) => Promise<void>]>([
    [
      "the object is woken",
      async (application, lost) => {
        lost.stop();
        await wake(application);
      },
    ],
    [
      "the object compares itself with D1 first",
      async (application, lost) => {
        lost.stop();
        await wake(application, true);
      },
    ],
    [
      "the object ends first",
      async (application) => {
        // The suspension, and what is to take its place.
        await until(async () => expect((await journalOf(application)).at(-2)?.sequence).toBe(2));
        await runInDurableObject(allocatorOf(application), (_, state) => state.abort("the object dies")).catch(
          () => {},
        );
        await wake(application, true);
      },
    ],
  ])("never happens when its entry was lost on the way, and %s", async (_, next) => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const lost = new LostEntries();
    await aroundObjectD1(application, () => lost.around);
    timers = new StandingTimers();
    const refused = takeStep(application, number, "suspend");
    await timers.pass(10_000, () => lost.count >= 2);
    expect((await refused).status).toBe(503);
    await next(application, lost);
    expect(await stateOf(application, number)).toBe("active");
    await issueTo(application, "other", "bob");
    expect(await stateOf(application, number)).toBe("active");
    expect((await takeStep(application, number, "suspend")).status).toBe(200);
  });

  it("never undoes a later one when D1 gets its entry late", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const held = await answer503(application, () => takeStep(application, number, "suspend"));
    held.stop();
    await issueTo(application, "other", "bob");
    await held.letThrough().catch(() => {});
    expect(await stateOf(application, number)).toBe("active");
    await wake(application, true);
    expect(await stateOf(application, number)).toBe("active");
    expect(await badgeRows(application)).toHaveLength(2);
  });

  it("is a gap when a restored D1 gets its entry late in place of another, which was answered (contract section 21)", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const snapshot = await takeSnapshot(application);
    const held = await answer503(application, () => takeStep(application, number, "suspend"));
    held.stop();
    await issueTo(application, "other", "bob");
    await restore(application, snapshot);
    await held.letThrough();
    await wake(application, true);
    expect(log.lines()).toContainEqual(expect.objectContaining({ event: "journal-gap", application: application.id }));
    expect(outcome(await requestQuietly(application, "third", { userId: "carol" }))).toBe("503 UNAVAILABLE");
  });

  it("is found to have happened when D1 got its entry before the next one", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const held = await answer503(application, () => takeStep(application, number, "suspend"));
    await held.letThrough();
    expect(outcome(await takeStep(application, number, "suspend"))).toBe("200");
    expect(await stateOf(application, number)).toBe("suspended");
    await wake(application, true);
    expect(await stateOf(application, number)).toBe("suspended");
  });

  it.each([
    ["that changes something", { userId: "bob", metadata: { os: "iOS" } }],
    ["that changes nothing, once another entry has its place", { userId: "bob" }],
  ])("of a login leaves the device's current badge to a later login %s (contract section 1)", async (_, later) => {
    const application = await createApplication();
    await issueTo(application, "phone", "alice");
    const bob = await issueTo(application, "phone", "bob");
    const held = await answer503(application, () => requestQuietly(application, "phone", { userId: "alice" }));
    held.stop();
    if (!("metadata" in later)) {
      timers?.stop();
      const before = await sequenceOf(application);
      await until(async () => expect(await sequenceOf(application)).toBe(before + 1));
    }
    expect((await requestQuietly(application, "phone", later)).status).toBe(200);
    timers?.stop();
    await held.letThrough().catch(() => {});
    const { body } = await signOn(application, "phone");
    expect(decodeJwt(String(body.signature)).sub).toBe(bob);
  });

  it("of a block and of an unblock never undoes the later other one (contract section 12)", async () => {
    for (const [late, later, isBlocked] of [
      [block, unblock, false],
      [unblock, block, true],
    ] as const) {
      const application = await createApplication();
      if (late === unblock) await block(application, "alice");
      const held = await answer503(application, () => late(application, "alice"));
      held.stop();
      expect((await later(application, "alice")).status).toBe(200);
      timers?.stop();
      const issued = await requestQuietly(application, "new phone", { userId: "alice" });
      expect(issued.status).toBe(isBlocked ? 403 : 201);
      await held.letThrough().catch(() => {});
      await wake(application, true);
      const again = await requestQuietly(application, "new phone", { userId: "alice" });
      expect(again.status).toBe(isBlocked ? 403 : 200);
    }
  });
});

describe("a call that was answered 503 and that D1 has got all the same (contract section 21)", () => {
  /** The call, late, and once more, when it gets what D1 has. */
  async function callLate(application: TestApplication, call: () => Promise<Answer>): Promise<void> {
    const held = await answer503(application, call);
    await held.letThrough();
    await wake(application, true);
    expect((await call()).status).toBe(200);
  }

  it("gives a claimed number no second owner when D1 is restored to before the claim", async () => {
    const application = await createApplication();
    const { token } = await invite(application);
    const snapshot = await takeSnapshot(application);
    await callLate(application, () => claim(application, "phone", "alice", token));
    await restore(application, snapshot);
    expect(outcome(await claim(application, "other", "eve", token))).toBe("409 CLAIMED_INVITATION");
    expect(outcome(await claim(application, "phone", "alice", token))).toBe("200");
  });

  it("leaves a badge revoked when D1 is restored to before it was issued", async () => {
    const application = await createApplication();
    await issueTo(application, "phone-1", "alice");
    const snapshot = await takeSnapshot(application);
    const number = await issueTo(application, "phone-2", "bob");
    await callLate(application, () => takeStep(application, number, "revoke"));
    await restore(application, snapshot);
    expect(outcome(await requestQuietly(application, "phone-2", { userId: "bob" }))).toBe("403 REVOKED_BADGE");
    expect(await stateOf(application, number)).toBe("revoked");
  });
});

describe("while D1 takes no entry", () => {
  it("an object keeps at most five entries that D1 may still apply, and goes on when D1 does", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const lost = new LostEntries();
    await aroundObjectD1(application, () => lost.around);
    timers = new StandingTimers();
    for (let round = 0; round < 6; round++) {
      let isAnswered = false;
      const refused = takeStep(application, number, "suspend").finally(() => {
        isAnswered = true;
      });
      // The object may make a try of its own before it has this call. Once it keeps five entries, it answers without a try.
      while (!isAnswered) {
        const before = lost.count;
        await timers.pass(10_000, () => lost.count > before || isAnswered);
      }
      expect((await refused).status).toBe(503);
      const sequence = await sequenceOf(application);
      const waiting = (await journalOf(application)).filter((entry) => entry.sequence > sequence);
      expect(waiting.length).toBeLessThanOrEqual(5);
    }
    lost.stop();
    expect((await takeStep(application, number, "suspend")).status).toBe(200);
    expect(await stateOf(application, number)).toBe("suspended");
    const sequence = await sequenceOf(application);
    expect((await journalOf(application)).filter((entry) => entry.sequence >= sequence)).toHaveLength(1);
  });

  it("leaves the invitation of the call before it alone, when D1 refuses its entry in the end (contract section 5)", async () => {
    const application = await createApplication();
    const { token } = await invite(application);
    // The object decides without reading that nobody is blocked.
    await runSql("INSERT INTO blocked_user VALUES (?1, 'mallory', 1, 0, 0, 0, 0)", application.id);
    let isLost = false;
    await aroundObjectD1(application, () => async (statements, send) => {
      if (isLost || !isAbout(statements, ENTRY)) return send();
      isLost = true;
      throw LOST;
    });
    expect(outcome(await requestQuietly(application, "phone-1", { userId: "mallory" }))).toBe("403 BLOCKED_USER");
    expect(isLost).toBe(true);
    await wake(application);
    expect(outcome(await claim(application, "phone-2", "alice", token))).toBe("201");
  });

  it("at most 1,000 calls wait; one more is answered 503 at once", async () => {
    const application = await createApplication();
    let [isHeld, isWaiting] = [true, false];
    await aroundObjectD1(application, () => async (_, send) => {
      isWaiting = true;
      while (isHeld) await scheduler.wait(5);
      return send();
    });
    const call = (place: number) =>
      allocatorOf(application).call(application.id, {
        id: `call-${place}`,
        until: Date.now() + 60_000,
        origin: { actor: { kind: "server" } },
        command: { kind: "step", number: place, step: { kind: "suspend" }, ifChange: null, ownedBy: null },
      });
    const first = call(0);
    await until(() => expect(isWaiting).toBe(true));
    const waiting = inParallel(1000, (place) => call(place + 1));
    await scheduler.wait(100);
    const tooMany = call(2000).then(({ outcome }) => outcome);
    expect(await Promise.race([tooMany, scheduler.wait(20_000)])).toEqual({ kind: "unavailable" });
    isHeld = false;
    await Promise.all([first, waiting]);
  });
});

describe("an object that ends in the middle of a write", () => {
  /** At its next entry, which D1 has then or has not. */
  const endAtEntry = (application: { id: string }, isSent: boolean) =>
    aroundObjectD1(application, (state) => async (statements, send) => {
      if (!isAbout(statements, ENTRY)) return send();
      await state.storage.sync();
      if (isSent) await send();
      state.abort("the object dies");
      return new Promise(() => {});
    });

  const MOMENTS = [
    { moment: "before D1 has the entry", isSent: false },
    { moment: "once D1 has the entry", isSent: true },
  ];

  it.each(MOMENTS)("$moment, answers the same call as it was decided, and only once D1 has it", async ({ isSent }) => {
    const application = await createApplication();
    const number = Number(await issueTo(application, "phone", "alice"));
    await endAtEntry(application, isSent);
    const call: Call = {
      id: "the same call",
      until: Date.now() + 9000,
      origin: { actor: { kind: "server" } },
      command: { kind: "block", userId: "alice" },
    };
    const ask = async () => await allocatorOf(application).call(application.id, call);
    await expect(ask()).rejects.toThrow();
    const { outcome: told } = await ask();
    expect(told).toEqual({ kind: "user", userId: "alice", numbers: [number] });
    expect(await badgeRows(application)).toMatchObject([{ state: "revoked" }]);
  });

  it("gives a claimed number no second owner (contract section 5)", async () => {
    const application = await createApplication();
    const { token, number } = await invite(application);
    await endAtEntry(application, true);
    expect((await claim(application, "phone", "alice", token)).status).toBe(503);
    expect(outcome(await claim(application, "other", "bob", token))).toBe("409 CLAIMED_INVITATION");
    const claimed = await claim(application, "phone", "alice", token);
    expect(claimed).toMatchObject({ status: 200, body: { badgeId: String(number) } });
  });
});
