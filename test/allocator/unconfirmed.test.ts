import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { deviceId, invitationDigest } from "../../src/shared/identifiers.ts";
import { sweep } from "../../src/worker/sweep.ts";
import { inParallel, passHours, requestQuietly } from "../badges/support.ts";
import { claim, outcome, requestInvitation, revoke } from "../invitations/support/calls.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "../invitations/support/clock.ts";
import { expectConsistent } from "../invitations/support/invariants.ts";
import { RECORDED_EVENTS, readLedger, readRows } from "../invitations/support/storage.ts";
import { allocatorOf, aroundAllocators, aroundObjectD1, leasesOf, withLedger } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { testContext } from "../support/context.ts";
import { isAbout, LOST } from "../support/faults.ts";
import type { Answer } from "../support/http.ts";

useStandingClock();

beforeEach(() => {
  for (const level of ["log", "warn", "error"] as const) vi.spyOn(console, level).mockImplementation(() => {});
});

afterEach(() => {
  vi.restoreAllMocks();
});

const EXHAUSTED = "503 NUMBERS_EXHAUSTED";

const ask = (application: { id: string }, udid: string) => requestQuietly(application, udid, { userId: "alice" });
const inviteForADay = (application: { id: string }) => requestInvitation(application, { expiresAt: ahead(DAY) });

/** What happens while the object's D1 is away. */
async function duringOutage(application: TestApplication, act: () => Promise<unknown>): Promise<void> {
  await aroundObjectD1(application, () => () => Promise.reject(new Error("D1_ERROR: D1 is away")));
  await act();
  await evictDurableObject(allocatorOf(application));
}

/** Invitations that fail because D1 is away: each leaves a lease behind. */
async function inviteInVain(application: TestApplication, count: number): Promise<void> {
  await duringOutage(application, async () => {
    for (let made = 0; made < count; made++) {
      expect(outcome(await inviteForADay(application))).toBe("503 UNAVAILABLE");
    }
  });
}

/** POST /v1/invitation with another allocator binding. */
function inviteThrough(application: { id: string }, ALLOCATOR: Env["ALLOCATOR"]): Promise<Answer> {
  const request = new Request("https://badges.example/v1/invitation", {
    method: "POST",
    headers: { applicationid: application.id, udid: "creator" },
    body: JSON.stringify({ expiresAt: ahead(DAY) }),
  });
  return callWith({ ALLOCATOR, DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED }, request);
}

const alarmOf = (application: TestApplication) => withLedger(application, (_, storage) => storage.getAlarm());

/** Lets the alarm ring at its time, if it has come. */
async function ringAlarm(application: TestApplication): Promise<void> {
  const alarm = await alarmOf(application);
  if (alarm !== null && alarm <= Date.now()) await runDurableObjectAlarm(allocatorOf(application));
}

describe("numbers leased during an outage of D1 (contract sections 1 and 5)", () => {
  it("are leased again if the range is otherwise exhausted, after five minutes and not before", async () => {
    const application = await createApplication({ size: 3 });
    await inviteInVain(application, 3);
    moveClock(5 * MINUTE - 1);
    expect(outcome(await ask(application, "device"))).toBe(EXHAUSTED);
    moveClock(1);
    expect((await ask(application, "device")).status).toBe(201);
    expect((await inviteForADay(application)).status).toBe(201);
    expect((await inviteForADay(application)).status).toBe(201);
    expect(outcome(await inviteForADay(application))).toBe(EXHAUSTED);
  });

  it("stay with a device that asks again before then", async () => {
    const application = await createApplication({ size: 1 });
    await duringOutage(application, () => ask(application, "device"));
    moveClock(4 * MINUTE);
    await duringOutage(application, () => ask(application, "device"));
    moveClock(4 * MINUTE);
    expect(outcome(await ask(application, "other"))).toBe(EXHAUSTED);
    expect((await ask(application, "device")).status).toBe(201);
  });

  it("do not count as exhausted while D1 cannot say who owns them", async () => {
    const application = await createApplication({ size: 1 });
    await inviteInVain(application, 1);
    moveClock(5 * MINUTE);
    await duringOutage(application, async () => {
      expect(outcome(await ask(application, "device"))).toBe("503 UNAVAILABLE");
    });
    expect((await ask(application, "device")).status).toBe(201);
  });

  it("are looked up once, however many requests ask then and afterwards", async () => {
    const application = await createApplication({ size: 2 });
    expect((await ask(application, "first")).status).toBe(201);
    await duringOutage(application, () => ask(application, "gone"));
    let looks = 0;
    const askMany = async (name: string) => {
      const answers = await inParallel(20, (index) => ask(application, `${name} ${index}`));
      return answers.map(outcome).sort();
    };
    await aroundObjectD1(application, () => (statements, send) => {
      if (isAbout(statements, "FROM json_each(?1) AS asked JOIN badge")) looks++;
      return send();
    });
    expect(await askMany("early")).toEqual(Array.from({ length: 20 }, () => EXHAUSTED));
    expect(looks).toBeLessThanOrEqual(1);
    looks = 0;
    moveClock(5 * MINUTE);
    expect((await askMany("late")).filter((answer) => answer === "201")).toHaveLength(1);
    expect(looks).toBe(1);
    looks = 0;
    expect(await askMany("later")).toEqual(Array.from({ length: 20 }, () => EXHAUSTED));
    moveClock(HOUR);
    expect(await askMany("last")).toEqual(Array.from({ length: 20 }, () => EXHAUSTED));
    expect(looks).toBe(0);
  });

  it("are free again an hour after each was leased, without any request", async () => {
    const application = await createApplication({ size: 100 });
    const startedAt = Date.now();
    await inviteInVain(application, 3);
    moveClock(59 * MINUTE);
    await inviteInVain(application, 1);
    expect(await alarmOf(application)).toBe(startedAt + HOUR);
    moveClock(MINUTE);
    await ringAlarm(application);
    expect((await readLedger(application)).free).toHaveLength(3);
    expect(await alarmOf(application)).toBe(startedAt + 59 * MINUTE + HOUR);
    moveClock(59 * MINUTE);
    await ringAlarm(application);
    expect((await readLedger(application)).free).toHaveLength(4);
    expect(await alarmOf(application)).toBeNull();
  });

  it("are free within a minute after D1 recovers, if it was down when they were due", async () => {
    const application = await createApplication({ size: 100 });
    await inviteInVain(application, 2);
    moveClock(HOUR);
    await duringOutage(application, () => ringAlarm(application));
    expect((await readLedger(application)).free).toHaveLength(0);
    moveClock(MINUTE);
    await ringAlarm(application);
    expect((await readLedger(application)).free).toHaveLength(2);
  });
});

describe("an invitation whose token was never reported (contract section 5)", () => {
  /** D1 reserves, and its response is lost: the lease is never confirmed. */
  async function reserveUntold(expiresAtTime: number) {
    const application = await createApplication({ size: 1, ...RECORDED_EVENTS });
    await aroundObjectD1(application, () => async (_, send) => {
      await send();
      throw new Error("D1_ERROR: the response is lost");
    });
    expect(await reserve(application, expiresAtTime)).toEqual({ kind: "unavailable" });
    await evictDurableObject(allocatorOf(application));
    expect(await leasesOf(application)).toMatchObject([{ confirmed: false }]);
    expect((await readRows(application)).invitations).toMatchObject([{ state: "pending" }]);
    return application;
  }

  /** The same request each time: what the Worker sends, and sends again. */
  function reserve({ id, firstNumber: first, lastNumber: last }: TestApplication, expiresAtTime: number) {
    const expiresAt = new Date(expiresAtTime).toISOString();
    const invitation = invitationDigest.parse(`digest of ${id}`);
    const ofBadge = { badgeExpiresAt: null, badgeExpiresAtTime: null };
    const times = { expiresAt, expiresAtTime, createdAt: Date.now(), ...ofBadge };
    const request = {
      invitation,
      creatorDevice: deviceId.parse("creator"),
      withSecret: false,
      isRepeatable: false,
      ...times,
    };
    return allocatorOf({ id }).reserve({ range: { first, last }, reuseAfterSeconds: 0 }, request);
  }

  it("is ended within about an hour, and its number is free", async () => {
    const application = await reserveUntold(Date.now() + DAY);
    moveClock(HOUR);
    await ringAlarm(application);
    const { invitations, badges, ledger } = await expectConsistent(application);
    expect(invitations).toMatchObject([{ state: "revoked", endedAt: Date.now(), releasedAt: Date.now() }]);
    expect(badges).toEqual([]);
    expect(ledger.free).toEqual([application.firstNumber]);
    await sweep([testContext().context]);
    expect((await ask(application, "device")).status).toBe(201);
    await expectConsistent(application);
  });

  it("frees its number even when D1's response to its end was lost", async () => {
    const application = await reserveUntold(Date.now() + DAY);
    let lost = 0;
    await aroundObjectD1(application, () => async (statements, send) => {
      const response = await send();
      if (!isAbout(statements, "UPDATE invitation") || lost++ > 0) return response;
      throw LOST;
    });
    moveClock(HOUR);
    await ringAlarm(application);
    expect(lost).toBeGreaterThan(0);
    expect((await expectConsistent(application)).ledger.free).toEqual([application.firstNumber]);
  });

  it("is ended after five minutes if the range is otherwise exhausted", async () => {
    const application = await reserveUntold(Date.now() + DAY);
    expect(outcome(await ask(application, "device"))).toBe(EXHAUSTED);
    moveClock(5 * MINUTE);
    expect((await ask(application, "device")).status).toBe(201);
    expect((await expectConsistent(application)).invitations).toMatchObject([{ state: "revoked" }]);
  });

  it("expires at its time, whichever part notices it first", async () => {
    const expiresAtTime = Date.now() + SECOND;
    const application = await reserveUntold(expiresAtTime);
    moveClock(HOUR);
    await ringAlarm(application);
    expect((await expectConsistent(application)).invitations).toMatchObject([
      { state: "expired", endedAt: expiresAtTime },
    ]);
    const other = await reserveUntold(Date.now() + SECOND);
    moveClock(HOUR);
    await sweep([testContext().context]);
    await ringAlarm(other);
    expect((await expectConsistent(other)).ledger.free).toEqual([other.firstNumber]);
  });

  it.each([
    { what: "the request is repeated", asked: (time: number) => time, response: { kind: "existing" } },
    { what: "another one comes with its key", asked: (time: number) => time + 1, response: { kind: "mismatched" } },
  ])("stays ended when $what afterwards, and its number stays free", async ({ asked, response }) => {
    const expiresAtTime = Date.now() + DAY;
    const application = await reserveUntold(expiresAtTime);
    moveClock(HOUR);
    await ringAlarm(application);
    expect(await reserve(application, asked(expiresAtTime))).toMatchObject(response);
    const { invitations, ledger } = await expectConsistent(application);
    expect(invitations).toMatchObject([{ state: "revoked" }]);
    expect(ledger.free).toEqual([application.firstNumber]);
  });

  it.each(["before", "after"])("stays ended when the request is repeated %s D1 ends it", async (when) => {
    const expiresAtTime = Date.now() + DAY;
    const application = await reserveUntold(expiresAtTime);
    moveClock(HOUR);
    let repeated: Promise<unknown> | undefined;
    await aroundObjectD1(application, () => async (statements, send) => {
      const isEnd = isAbout(statements, "iif(expires_at_time");
      if (isEnd && when === "before") repeated = reserve(application, expiresAtTime);
      const sent = await send();
      if (isEnd && when === "after") repeated = reserve(application, expiresAtTime);
      return sent;
    });
    await ringAlarm(application);
    await repeated;
    await ringAlarm(application);
    expect(repeated).toBeDefined();
    moveClock(HOUR);
    await ringAlarm(application);
    const { invitations, ledger } = await expectConsistent(application);
    expect(invitations).toMatchObject([{ state: "revoked" }]);
    expect(ledger.free).toEqual([application.firstNumber]);
  });

  it("ends at once when the object's response is lost for good", async () => {
    const application = await createApplication({ size: 1, ...RECORDED_EVENTS });
    const ALLOCATOR = aroundAllocators(async (method, call) => {
      await call();
      if (method === "reserve") throw LOST;
      return call();
    });
    expect(outcome(await inviteThrough(application, ALLOCATOR))).toBe("503 UNAVAILABLE");
    expect((await readRows(application)).invitations).toMatchObject([{ state: "revoked" }]);
    await sweep([testContext().context]);
    expect((await expectConsistent(application)).ledger.free).toEqual([application.firstNumber]);
  });

  it("is reported when the Worker's own retry succeeds, and then keeps its number", async () => {
    const application = await createApplication({ size: 2, ...RECORDED_EVENTS });
    let tries = 0;
    const ALLOCATOR = aroundAllocators(async (_, call) => {
      const called = await call();
      if (tries++ === 0) throw LOST;
      return called;
    });
    const told = await inviteThrough(application, ALLOCATOR);
    expect(told.status).toBe(201);
    await passHours(application, 2);
    expect(outcome(await claim(application, "phone", "alice", told.body.id))).toBe("201");
    expect((await expectConsistent(application)).badges).toMatchObject([{ number: Number(told.body.badgeId) }]);
  });

  it.each(["claimed", "revoked"])("does not count as such once it was %s, whatever the lease says", async (end) => {
    const application = await createApplication({ size: 1, ...RECORDED_EVENTS });
    const { body } = await inviteForADay(application);
    const token = String(body.id);
    // The object is restored to the moment before it confirmed.
    await withLedger(application, (_, { sql }) => sql.exec("UPDATE lease SET confirmed = 0").toArray());
    if (end === "claimed") await claim(application, "phone", "alice", token);
    else await revoke(application, token);
    await evictDurableObject(allocatorOf(application));
    moveClock(5 * MINUTE);
    expect(outcome(await ask(application, "other"))).toBe(end === "claimed" ? EXHAUSTED : "201");
    expect((await expectConsistent(application)).invitations).toMatchObject([{ state: end }]);
  });
});
