import { describe, expect, it } from "vitest";
import { DUE_CHUNK_ROWS } from "../../src/shared/limits.ts";
import { block, getBadge, issueTo } from "../badges/life-support.ts";
import { inParallel, requestQuietly } from "../badges/support.ts";
import { outcome } from "../invitations/support/calls.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { aroundAllocators, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { failing, failingTrips, isAbout, LOST } from "../support/faults.ts";
import { homeDatabase } from "../support/home.ts";
import { serverHeaders } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";
import { ENTRY, putIntoInbox, resultOf, wake } from "./support.ts";

useQuietLog();

/** The largest fields that a request may have, and twice as large in JSON. */
const LONGEST = '"'.repeat(256);
const METADATA = { deviceModel: LONGEST, os: LONGEST, osVersion: LONGEST, sdkVersion: LONGEST };

/** An application of a user with 500 badges of maximal metadata. */
async function crowded() {
  const application = await createApplication();
  for (let round = 0; round < 5; round++) {
    const body = { userId: "mallory", metadata: METADATA };
    const answers = await inParallel(100, (place) => requestQuietly(application, `${round}-${place}`, body));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  }
  return application;
}

describe("badges that expire at one moment (contract section 12)", () => {
  it("are recorded by one call of the clock, 500 of maximal metadata too, each with a change number", {
    timeout: 120_000,
  }, async () => {
    const application = await crowded();
    const end = homeDatabase().prepare("UPDATE badge SET expires_at = 1000 WHERE application_id = ?1");
    await end.bind(application.id).run();
    await wake(application);
    const rows = await badgeRows(application);
    expect(rows.filter(({ endedAt }) => endedAt === null)).toEqual([]);
    expect(new Set(rows.map(({ change }) => change)).size).toBe(500);
  });

  it("are recorded by one call of the clock, however many more than a chunk there are", async () => {
    const application = await createApplication();
    await inParallel(DUE_CHUNK_ROWS + 10, (place) => requestQuietly(application, `phone-${place}`, { userId: "bob" }));
    const end = homeDatabase().prepare("UPDATE badge SET expires_at = 1000 WHERE application_id = ?1");
    await end.bind(application.id).run();
    await wake(application);
    expect((await badgeRows(application)).filter(({ endedAt }) => endedAt === null)).toEqual([]);
  });
});

describe("blocking a user with 500 badges of maximal metadata (contract section 12)", () => {
  it("revokes all of them, while others get badges", { timeout: 120_000 }, async () => {
    const application = await crowded();
    const startedAt = Date.now();
    let isBlocked = false;
    const blocked = block(application, "mallory").finally(() => {
      isBlocked = true;
    });
    const waits: number[] = [];
    while (!isBlocked) {
      const askedAt = Date.now();
      await issueTo(application, `other-${waits.length}`, "bob");
      waits.push(Date.now() - askedAt);
    }
    const { status, body } = await blocked;
    expect(status).toBe(200);
    expect(body.revoked).toHaveLength(500);
    expect(Date.now() - startedAt).toBeLessThan(90_000);
    expect(Math.max(...waits)).toBeLessThan(5000);
    const rows = await badgeRows(application);
    expect(rows.filter(({ userId, state }) => userId === "mallory" && state !== "revoked")).toEqual([]);
    expect(rows.filter(({ userId, state }) => userId === "bob" && state !== "active")).toEqual([]);
  });

  it("is finished by the clock when the caller is gone after the first chunk", async () => {
    const application = await createApplication();
    await inParallel(150, (place) => requestQuietly(application, `phone-${place}`, { userId: "mallory" }));
    let entries = 0;
    await aroundObjectD1(application, (state) => async (statements, send) => {
      if (isAbout(statements, ENTRY) && ++entries === 2) {
        state.abort("the object dies");
        return new Promise(() => {});
      }
      return send();
    });
    expect((await block(application, "mallory")).status).toBe(503);
    expect(outcome(await requestQuietly(application, "new", { userId: "mallory" }))).toBe("403 BLOCKED_USER");
    await wake(application);
    await wake(application);
    const live = (await badgeRows(application)).filter(({ state }) => state !== "revoked");
    expect(live).toEqual([]);
    const { body } = await block(application, "mallory");
    expect(body.revoked).toHaveLength(150);
  });
});

describe("a block whose response is lost (contract section 12)", () => {
  const ONCE = { name: "once", times: 1, error: LOST, isOvercome: true };
  const send = (application: TestApplication, bindings: Partial<Env>) => {
    const init = { method: "PATCH", headers: serverHeaders(application) };
    return callWith(bindings, new Request("https://badges.example/v1/users/alice/block", init));
  };

  it("on the way from the object returns the numbers that it revoked", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const lose = failing(ONCE, "after");
    const ALLOCATOR = aroundAllocators((_, call) => lose(call));
    expect(await send(application, { ALLOCATOR })).toMatchObject({ status: 200, body: { revoked: [number] } });
  });

  it("on the way from D1 returns the numbers that it revoked", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    await aroundObjectD1(application, () => failingTrips(ENTRY, ONCE, "after"));
    expect(await send(application, {})).toMatchObject({ status: 200, body: { revoked: [number] } });
  });
});

describe("commands of the administration script (contract section 21)", () => {
  it("are carried out in the order in which they came, each once", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const suspended = await putIntoInbox(application, { kind: "suspend", number: Number(number) });
    await Promise.all([wake(application), wake(application)]);
    expect(await resultOf(suspended)).toMatchObject({ kind: "badge" });
    expect((await getBadge(application, number)).body.state).toBe("suspended");
    const changes = (await badgeRows(application)).map(({ change }) => change);
    await Promise.all([wake(application), wake(application)]);
    expect((await badgeRows(application)).map(({ change }) => change)).toEqual(changes);
  });
});
