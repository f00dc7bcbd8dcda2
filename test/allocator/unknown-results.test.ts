import { runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { newRandomId } from "../../src/shared/identifiers.ts";
import { Allocator } from "../../src/worker/allocator/allocator.ts";
import { CALL_VERSION, type CallMessage, type Command } from "../../src/worker/allocator/commands.ts";
import { Log } from "../../src/worker/allocator/tables/entry-log.ts";
import { issueTo, takeStep, withBadge } from "../badges/life-support.ts";
import {
  type AroundCall,
  alarmOf,
  allocatorOf,
  aroundAllocators,
  aroundObjectD1,
  endAllocator,
  ring,
  wake,
} from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import type { AroundTrip } from "../support/d1.ts";
import { failing, isAbout, LOST } from "../support/faults.ts";
import { HeldTrips } from "../support/held.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { type Answer, serverHeaders } from "../support/http.ts";
import { log } from "../support/log.ts";
import { badgeRows } from "../support/rows.ts";
import { isSettled, StandingTimers } from "../support/timers.ts";
import { until } from "../support/until.ts";
import {
  aroundNextEntry,
  ENTRY,
  expectInSync,
  loseResponse,
  putCommand,
  reconcile,
  resultOf,
  sequenceOf,
  stateOf,
} from "./support.ts";

let timers: StandingTimers | undefined;
afterEach(() => {
  timers?.stop();
  timers = undefined;
});

const historyOf = async ({ id }: TestApplication) =>
  (await homeDatabase().prepare("SELECT action FROM history WHERE application_id = ?1").bind(id).raw()).flat();

describe("a batch whose result nobody knows (contract section 21)", () => {
  it.each<[string, AroundTrip]>([
    ["is lost on the way", () => Promise.reject(LOST)],
    ["is carried out, and its response is lost", loseResponse],
    [
      "is carried out twice",
      async (_, send) => {
        const first = await send();
        await expect(send()).rejects.toThrow("application_head.sequence");
        return first;
      },
    ],
    [
      "fails for what looks like an error of D1's",
      () => Promise.reject(new Error("D1_ERROR: no such table: badge: SQLITE_ERROR")),
    ],
  ])("%s: the change happens once, and its caller gets the result", async (_, around) => {
    const { application, number } = await withBadge();
    const sequence = await sequenceOf(application);
    await aroundNextEntry(application, around);
    expect((await takeStep(application, number, "suspend")).status).toBe(200);
    expect(await stateOf(application, number)).toBe("suspended");
    expect(await historyOf(application)).toEqual(["badge:suspended"]);
    expect(await sequenceOf(application)).toBe(sequence + 1);
    await expectInSync(application);
  });

  it("a batch that D1 carries out after later ones changes nothing", async () => {
    const { application, number } = await withBadge();
    let late: (() => Promise<unknown>) | undefined;
    await aroundNextEntry(application, async (_, send) => {
      late = send;
      throw LOST;
    });
    expect((await takeStep(application, number, "suspend")).status).toBe(200);
    expect((await takeStep(application, number, "resume")).status).toBe(200);
    await expect(late?.()).rejects.toThrow("application_head.sequence");
    expect(await stateOf(application, number)).toBe("active");
    await expectInSync(application);
  });

  it("while D1 refuses an entry, a line and `reconcile` say so, and `--republish` brings D1 up to date without the entry", async () => {
    const { application, number } = await withBadge();
    let isRefusing = true;
    await aroundObjectD1(application, () => async (statements, send) => {
      if (isAbout(statements, "DELETE FROM status_list")) isRefusing = false;
      if (!isRefusing || !isAbout(statements, ENTRY)) return send();
      throw new Error("D1_ERROR: UNIQUE constraint failed: badge.device: SQLITE_CONSTRAINT");
    });
    const revoked = takeStep(application, number, "revoke");
    const line = { event: "entry-refused", level: "error", application: application.id, sequence: 3 };
    await until(() => expect(log.lines()).toContainEqual(expect.objectContaining(line)));
    expect(await reconcile(application)).toMatchObject({ state: "entry-refused", d1: 2, allocator: 3 });
    expect(await reconcile(application, { republish: true })).toMatchObject({ state: "in-sync", republished: true });
    expect((await revoked).status).toBe(200);
    expect(await stateOf(application, number)).toBe("revoked");
    await expectInSync(application);
  });
});

describe("while D1 does not respond (contract section 21)", () => {
  /** A suspension of `number` is on its way to D1, which hangs. */
  async function hanging() {
    const { application, number } = await withBadge();
    const other = await issueTo(application, "tablet", "bob");
    const held = new HeldTrips(ENTRY);
    await aroundObjectD1(application, () => held.around);
    timers = new StandingTimers();
    const first = takeStep(application, number, "suspend");
    await timers.pass(0, () => held.count === 1);
    return { application, number, other, held, first, timers };
  }

  it("while D1 does not respond, `reconcile` waits, and does not say that D1 refuses an entry", async () => {
    const { application } = await withBadge();
    let looks = 0;
    await aroundObjectD1(application, () => (statements, send) => {
      // The first look is where D1 was before, the second compares.
      const isLook = statements.length === 1 && isAbout(statements, "from application_head");
      return isLook && ++looks === 2 ? Promise.reject(LOST) : send();
    });
    const command = { kind: "reconcile", verify: false, republish: false, skip: 0 } as const;
    const id = await putCommand(application, command);
    await expect(wake(application)).rejects.toThrow("D1 is unavailable");
    expect(await resultOf(id)).toBeNull();
    await wake(application);
    expect(await resultOf(id)).toMatchObject({ state: "in-sync" });
  });

  it("while D1 does not respond, a call that waited until its deadline gets 503 and never happens", async () => {
    const { application, number, other, held, first, timers } = await hanging();
    const calls = vi.spyOn(Allocator.prototype, "call");
    const second = takeStep(application, other, "suspend");
    await timers.pass(9_000, () => calls.mock.calls.length === 1);
    expect([(await first).status, (await second).status]).toEqual([503, 503]);
    held.stop();
    await timers.pass(1_000);
    const third = await issueTo(application, "watch", "carol");
    expect(await stateOf(application, third)).toBe("active");
    // What was decided has happened by then, and what was not never does.
    expect([await stateOf(application, number), await stateOf(application, other)]).toEqual(["suspended", "active"]);
    await expectInSync(application);
  });

  it("after a caller's 503 the alarm comes a second after the batch was given up, in time to settle the call", async () => {
    const { application, number, held, first, timers } = await hanging();
    await timers.pass(9_000);
    expect((await first).status).toBe(503);
    const before = Number(await alarmOf(application));
    await timers.pass(1_000);
    while (Number(await alarmOf(application)) === before) await scheduler.wait(1);
    expect(await alarmOf(application)).toBe(Date.now() + 1_000);
    held.stop();
    await ring(application);
    expect(await stateOf(application, number)).toBe("suspended");
  });

  it("a call that changes nothing waits too, because its result depends on what D1 does not have yet", async () => {
    const { application, number, held, first, timers } = await hanging();
    const again = takeStep(application, number, "suspend");
    expect(await isSettled(again)).toBe(false);
    await held.letThrough();
    await timers.pass(10_000);
    await Promise.all([first, again]);
    expect(await stateOf(application, number)).toBe("suspended");
  });

  it("calls are lost for good if D1 gets none of the tries, and the alarm sends what was decided", async () => {
    const { application, number } = await withBadge();
    let [lost, isLosing] = [0, true];
    await aroundObjectD1(application, () => async (statements, send) => {
      if (!isLosing || !isAbout(statements, ENTRY)) return send();
      lost++;
      throw LOST;
    });
    timers = new StandingTimers();
    const refused = takeStep(application, number, "suspend");
    await timers.pass(10_000, () => lost >= 2);
    expect((await refused).status).toBe(503);
    isLosing = false;
    await wake(application);
    expect(await stateOf(application, number)).toBe("suspended");
    await expectInSync(application);
  });
});

const callOf = (command: Command, until = Date.now() + 9_000): CallMessage => ({
  ...{ version: CALL_VERSION, id: newRandomId(), until, command },
  audit: { actor: { kind: "server" } },
});

const suspension = (number: string): Command => ({
  kind: "transition",
  number: Number(number),
  transition: { kind: "suspend" },
  ...{ ifChange: null, ownedBy: null },
});

const ask = (application: TestApplication, call: CallMessage) => allocatorOf(application).call(application.id, call);

describe("a call that is repeated (contract sections 1 and 21)", () => {
  it.each(["by the same instance", "by the next one"])(
    "a repeated call is decided once, and gets the same result %s",
    async (who) => {
      const { application, number } = await withBadge();
      const call = callOf(suspension(number));
      const first = await ask(application, call);
      expect(first.outcome).toMatchObject({ kind: "badge", badge: { state: "suspended" } });
      await takeStep(application, number, "resume");
      if (who === "by the next one") await endAllocator(application);
      expect((await ask(application, call)).outcome).toEqual(first.outcome);
      expect(await stateOf(application, number)).toBe("active");
    },
  );

  it("the next instance reads the results of calls that may still be repeated, and not those of past ones", async () => {
    const { application, number } = await withBadge();
    timers = new StandingTimers();
    await ask(application, callOf(suspension(number)));
    await timers.pass(9_000);
    const call = callOf(suspension(number));
    await takeStep(application, number, "resume");
    const { outcome } = await ask(application, call);
    await timers.pass(8_999);
    await endAllocator(application);
    const read = vi.spyOn(Log.prototype, "recentGroups");
    expect((await ask(application, call)).outcome).toEqual(outcome);
    const ids = read.mock.results.flatMap(({ value }) => value.flat().map(({ id }: { id: string }) => id));
    expect(ids).toContain(call.id);
    // The call, and the one a moment before it.
    expect(ids).toHaveLength(2);
  });

  it("a call that is repeated at the same moment is decided once", async () => {
    const { application, number } = await withBadge();
    const sequence = await sequenceOf(application);
    // Each time that it is decided is one more row of the history.
    const rebinding = { kind: "transition", number: Number(number), transition: { kind: "rebind" } } as const;
    const call = callOf({ ...rebinding, ifChange: null, ownedBy: null });
    const [one, other] = await runInDurableObject(allocatorOf(application), (allocator) => {
      const ask = () => allocator.call(application.id, call);
      return Promise.all([ask(), ask()]);
    });
    expect(one.outcome).toEqual(other.outcome);
    expect(await historyOf(application)).toEqual(["badge:rebound"]);
    expect(await sequenceOf(application)).toBe(sequence + 1);
  });

  it("a call that is repeated after its deadline is not decided at all", async () => {
    const { application, number } = await withBadge();
    const { outcome } = await ask(application, callOf(suspension(number), Date.now()));
    expect(outcome).toEqual({ kind: "unavailable" });
    expect(await stateOf(application, number)).toBe("active");
  });

  it.each(["the allocator", "D1"])(
    "a call repeated because the response of %s was lost reserves one number, without an Idempotency-Key too",
    async (of) => {
      const application = await createApplication();
      await wake(application);
      const lose = failing({ name: "once", times: 1, error: LOST, isOvercome: true }, "after");
      if (of === "D1") await aroundNextEntry(application, (_, send) => lose(send));
      const ALLOCATOR = aroundAllocators((_, call) => (of === "D1" ? call() : lose(call)));
      const { status, body } = await callWith({ ALLOCATOR }, "POST", "/v1/invitation", {
        headers: { ...serverHeaders(application), udid: "server" },
        body: { expiresAt: new Date(Date.now() + 60_000).toISOString() },
      });
      expect(status).toBe(201);
      expect((await badgeRows(application)).map(({ number }) => String(number))).toEqual([body.badgeId]);
    },
  );
});

/** The server suspends a badge through a Worker whose calls of the allocator go through `around`. */
function suspendAround(application: TestApplication, number: string, around: AroundCall): Promise<Answer> {
  const headers = serverHeaders(application);
  return callWith({ ALLOCATOR: aroundAllocators(around) }, "PATCH", `/v1/badges/${number}/suspend`, { headers });
}

it("a call that is refused because of overload is not repeated, and gets 503 at once (contract section 7)", async () => {
  const { application, number } = await withBadge();
  let calls = 0;
  const { status, body } = await suspendAround(application, number, async () => {
    calls++;
    throw Object.assign(new Error("the call failed"), { overloaded: true });
  });
  expect([status, body, calls]).toEqual([503, { error: "UNAVAILABLE" }, 1]);
});

describe("an instance that another has superseded (contract section 21)", () => {
  const supersede = (application: TestApplication) =>
    runInDurableObject(allocatorOf(application), (_, { storage: { sql } }) => {
      const exec = sql.exec.bind(sql);
      vi.spyOn(sql, "exec").mockImplementation((query, ...bindings) => {
        if (query.includes('set "touches"')) throw new Error("another instance has this storage");
        return exec(query, ...bindings);
      });
    });
  const endSuperseded = (application: TestApplication) =>
    runInDurableObject(allocatorOf(application), () => vi.restoreAllMocks());

  it.each([
    ["", (known: boolean) => Promise.resolve(known)],
    [
      " while D1 is unknown to it",
      async (known: boolean, application: TestApplication) => {
        const entry = known ? "substr(entry, 2)" : "'?' || entry";
        await runSql(`UPDATE application_head SET entry = ${entry} WHERE application_id = ?1`, application.id);
        await wake(application, true);
      },
    ],
  ])(
    "a superseded instance returns no result%s: its local write fails, and the call goes to the new instance",
    async (_, setKnown) => {
      const { application, number } = await withBadge();
      await takeStep(application, number, "suspend");
      await setKnown(false, application);
      let calls = 0;
      await supersede(application);
      const { status } = await suspendAround(application, number, async (_, call) => {
        calls++;
        if (calls === 2) {
          await endSuperseded(application);
          await setKnown(true, application);
        }
        return call();
      });
      expect(status).toBe(200);
      expect(calls).toBe(2);
    },
  );

  it.each([
    { kind: "reconcile", verify: true, republish: false, skip: 0 },
    { kind: "show-user", userId: "alice" },
  ] as const)("a superseded instance stores no result of the script's $kind: its rows are old", async (command) => {
    const { application } = await withBadge();
    await supersede(application);
    const commandId = await putCommand(application, command);
    await expect(wake(application)).rejects.toThrow("another instance has this storage");
    expect(await resultOf(commandId)).toBeNull();
    await endSuperseded(application);
    await wake(application);
    expect(await resultOf(commandId)).not.toBeNull();
  });
});

describe("calls that are decided together (contract section 21)", () => {
  it("calls that are decided together are one entry, and one that cannot be decided fails alone", async () => {
    const { application, number } = await withBadge();
    const other = await issueTo(application, "tablet", "bob");
    const sequence = await sequenceOf(application);
    const broken: CallMessage = JSON.parse(
      JSON.stringify({ ...callOf(suspension(number)), command: { ...suspension(number), ifChange: {} } }),
    );
    const calls = [callOf(suspension(number)), broken, callOf(suspension(other))];
    const replies = await runInDurableObject(allocatorOf(application), (allocator) =>
      Promise.all(calls.map((call) => allocator.call(application.id, call))),
    );
    expect(replies.map(({ outcome: { kind } }) => kind)).toEqual(["badge", "failed", "badge"]);
    expect(await sequenceOf(application)).toBe(sequence + 1);
    await expectInSync(application);
  });

  it("while 1,000 calls wait for D1, a further one gets 503 at once, and those that wait are decided", async () => {
    const { application, number } = await withBadge();
    const d1 = Promise.withResolvers<void>();
    let isHeld = false;
    await aroundNextEntry(application, async (_, send) => {
      isHeld = true;
      await d1.promise;
      return send();
    });
    const kinds = await runInDurableObject(allocatorOf(application), async (allocator) => {
      const ask = async () => {
        const { outcome } = await allocator.call(application.id, callOf(suspension(number), Date.now() + 60_000));
        return outcome.kind;
      };
      const first = ask();
      while (!isHeld) await scheduler.wait(1);
      const waiting = Array.from({ length: 1000 }, ask);
      expect(await ask()).toBe("unavailable");
      d1.resolve();
      return Promise.all([first, ...waiting]);
    });
    expect(kinds).toEqual(Array(1001).fill("badge"));
  });
});
