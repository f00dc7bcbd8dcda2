import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { homeOf } from "../../src/shared/homes.ts";
import { PLATFORM_TRIES } from "../../src/shared/limits.ts";
import type { Call, Command } from "../../src/worker/allocator/commands.ts";
import { CallQueue, waitingFor } from "../../src/worker/core/queue.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { readInbox } from "../../src/worker/storage/inbox.ts";
import { getBadge, issueTo, takeStep } from "../badges/life-support.ts";
import { ahead, DAY, MINUTE, moveClock, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { allocatorOf, aroundAllocators, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { failing, failingTrips, LOST } from "../support/faults.ts";
import { boundHome, homeDatabase, runSql } from "../support/home.ts";
import { serverHeaders } from "../support/http.ts";
import { restore, takeSnapshot } from "../support/restoration.ts";
import { ENTRY, putIntoInbox, resultOf, wake } from "./support.ts";

const log = useQuietLog();

const stateOf = async (application: TestApplication, number: string) =>
  (await getBadge(application, number)).body.state;

describe("a group that D1 refuses and that breaks when half of it is tried alone", () => {
  it("fails that half, and what was told to have failed does not happen (contract section 21)", async () => {
    const application = await createApplication();
    const numbers = [await issueTo(application, "phone-1", "alice"), await issueTo(application, "phone-2", "bob")];
    let isSplit = false;
    let isBroken = false;
    await aroundObjectD1(application, () => async (statements, send) => {
      const badges = statements.find(({ sql }) => sql.includes("UPDATE badge"))?.parameters[0];
      if (!isSplit && typeof badges === "string" && JSON.parse(badges).length > 1) {
        isSplit = true;
        throw new Error("D1_ERROR: string or blob too big: SQLITE_TOOBIG");
      }
      const sent = await send();
      if (!isSplit || isBroken || statements.length === 1 || !Array.isArray(sent)) return sent;
      isBroken = true;
      sent[0].results = [{}];
      return sent;
    });
    const suspend = (number: string): Call => ({
      id: `suspend ${number}`,
      until: Date.now() + 9000,
      origin: { actor: { kind: "server" } },
      command: { kind: "step", number: Number(number), step: { kind: "suspend" }, ifChange: null, ownedBy: null },
    });
    const told = await runInDurableObject(allocatorOf(application), (object) =>
      Promise.all(numbers.map((number) => object.call(application.id, suspend(number)))),
    );
    expect([isSplit, isBroken]).toEqual([true, true]);
    expect(told.map(({ outcome }) => outcome.kind)).toEqual(["failed", "badge"]);
    const states = await Promise.all(numbers.map((number) => stateOf(application, number)));
    expect(states).toEqual(["active", "suspended"]);
  });
});

describe("a reservation that is retried (contract section 5)", () => {
  const lost = (times: number) => ({ name: "lost", times, error: LOST, isOvercome: true });

  it.each([
    ["of the object is lost", 1, 0],
    ["of D1 is lost as often as a call tries", 0, PLATFORM_TRIES],
  ])("because the response %s is made once, without an Idempotency-Key too", async (_, ofObject, ofD1) => {
    const application = await createApplication();
    const lose = failing(lost(ofObject), "after");
    const ALLOCATOR = aroundAllocators((method, call) => (method === "call" ? lose(call) : call()));
    await aroundObjectD1(application, () => failingTrips(ENTRY, lost(ofD1), "after"));
    const request = new Request("https://badges.example/v1/invitation", {
      method: "POST",
      headers: { ...serverHeaders(application), udid: "server" },
      body: JSON.stringify({ expiresAt: ahead(DAY) }),
    });
    const { status, body } = await callWith({ ALLOCATOR }, request);
    expect(status).toBe(201);
    const { results } = await homeDatabase()
      .prepare("SELECT number FROM badge WHERE application_id = ?1")
      .bind(application.id)
      .all();
    expect(results).toEqual([{ number: Number(body.badgeId) }]);
  });
});

describe("calls about one user (contract section 12)", () => {
  const waiting = (command: Command) =>
    waitingFor({ id: crypto.randomUUID(), until: null, origin: { actor: { kind: "server" } }, command });

  it.each([
    ["before the block began", true],
    ["while a chunk of it is under way", false],
  ])("an unblock that comes %s waits for all of the block, and others do not", (_, isBefore) => {
    const queue = new CallQueue();
    const block = waiting({ kind: "block", userId: "mallory" });
    const unblock = waiting({ kind: "unblock", userId: "mallory" });
    const other = waiting({ kind: "block", userId: "bob" });
    queue.add(block);
    if (isBefore) queue.add(unblock);
    expect(queue.take()).toEqual([block]);
    if (!isBefore) queue.add(unblock);
    queue.continueLater(block);
    queue.add(other);
    expect([queue.take(), queue.take()]).toEqual([[block], [other]]);
    queue.continueLater(block);
    expect([queue.take(), queue.take()]).toEqual([[block], [unblock]]);
  });
});

describe("the script's commands (contract section 21)", () => {
  it("are not carried out again when D1 is restored to before they were, and undo no later call", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const suspended = await putIntoInbox(application, { kind: "suspend", number: Number(number) });
    const snapshot = await takeSnapshot(application);
    await wake(application);
    expect((await takeStep(application, number, "resume")).status).toBe(200);
    await restore(application, snapshot);
    await wake(application);
    expect(await stateOf(application, number)).toBe("active");
    expect(await resultOf(suspended)).toMatchObject({ kind: "badge", badge: { state: "suspended" } });
  });

  it("do not keep the one that ends a gap from being read, however many wait", async () => {
    const application = await createApplication();
    for (let place = 0; place < 3; place++) await putIntoInbox(application, { kind: "suspend", number: 1 });
    await putIntoInbox(application, { kind: "reconcile", acceptLoss: true, skip: 0 });
    const [first] = await readInbox(new Database(boundHome(homeOf(application.id)).d1), application.id, 2);
    expect(first?.command.kind).toBe("reconcile");
  });
});

describe("D1 restored to an earlier moment (contract section 21)", () => {
  useStandingClock();

  it("is noticed though D1 was away when the clock asked the object to compare", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const snapshot = await takeSnapshot(application);
    await takeStep(application, number, "revoke");
    moveClock(3 * MINUTE);
    await runDurableObjectAlarm(allocatorOf(application));
    await restore(application, snapshot);
    let isAway = true;
    await aroundObjectD1(application, () => async (_, send) => {
      if (isAway) throw new Error("D1_ERROR: D1 DB is overloaded. Requests queued for too long.");
      return send();
    });
    const ask = async () => await wake(application, true);
    await expect(ask()).rejects.toThrow();
    isAway = false;
    moveClock(2 * MINUTE);
    expect(await runDurableObjectAlarm(allocatorOf(application))).toBe(true);
    expect(await stateOf(application, number)).toBe("revoked");
  });

  it("changes nothing more when D1 refuses the last entry now, which may have been answered", async () => {
    const application = await createApplication();
    const snapshot = await takeSnapshot(application);
    const number = await issueTo(application, "phone", "alice");
    await restore(application, snapshot);
    await runSql("INSERT INTO badge (number, application_id) VALUES (?1, 'app_foreign')", Number(number));
    await wake(application, true);
    const refusals = log.lines().filter(({ event }) => event === "entry-refused");
    expect(refusals[0]).toMatchObject({ level: "error", application: application.id, sequence: 1 });
    expect(await isInD1(Number(number), application)).toBe(false);
    expect(log.lines()).toContainEqual(expect.objectContaining({ event: "journal-gap", application: application.id }));
  });
});

const isInD1 = async (number: number, { id }: TestApplication) =>
  (await homeDatabase()
    .prepare("SELECT 1 FROM badge WHERE number = ?1 AND application_id = ?2")
    .bind(number, id)
    .first()) !== null;
