import { describe, expect, it } from "vitest";
import { DUE_CHUNK_ROWS, USER_CHUNK_BADGES } from "../../src/shared/limits.ts";
import { block, getBadge, issueTo } from "../badges/life-support.ts";
import { requestQuietly } from "../badges/support.ts";
import { outcome } from "../invitations/support/calls.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { aroundAllocators, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { failing, failingTrips, isAbout, LOST } from "../support/faults.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { serverHeaders } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";
import { ENTRY, putIntoInbox, resultOf, wake } from "./support.ts";

useQuietLog();

/** The largest fields that a request may have, and twice as large in JSON. */
const LONGEST = '"'.repeat(256);
const METADATA = JSON.stringify({ deviceModel: LONGEST, os: LONGEST, osVersion: LONGEST, sdkVersion: LONGEST });

/** An application in which mallory has so many badges of maximal metadata, as D1 would have them. */
async function crowded(count: number): Promise<TestApplication> {
  const application = await createApplication();
  const { id, firstNumber } = application;
  await homeDatabase().batch([
    homeDatabase()
      .prepare(
        `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ?4)
         INSERT INTO badge (number, application_id, device, user_id, metadata, position, turn, issued_at, change, changed_at)
         SELECT 7000000000 + ?2 + n, ?1, 'device ' || n, 'mallory', ?3, n, 1, 1, n, 1 FROM place`,
      )
      .bind(id, firstNumber, METADATA, count),
    homeDatabase()
      .prepare("UPDATE position SET last_position = ?2, last_change = ?2 WHERE application_id = ?1")
      .bind(id, count),
  ]);
  return application;
}

describe("badges that expire at one moment (contract section 12)", () => {
  it("are recorded by one call of the clock, many chunks of maximal metadata too, each with a change number", async () => {
    const application = await crowded(2 * DUE_CHUNK_ROWS + 100);
    const end = homeDatabase().prepare("UPDATE badge SET expires_at = 1000 WHERE application_id = ?1");
    await end.bind(application.id).run();
    await wake(application);
    const rows = await badgeRows(application);
    expect(rows.filter(({ endedAt }) => endedAt === null)).toEqual([]);
    expect(new Set(rows.map(({ change }) => change)).size).toBe(rows.length);
    expect(rows).toHaveLength(2 * DUE_CHUNK_ROWS + 100);
  });
});

describe("invitations that end at one moment (contract section 5)", () => {
  it("are recorded by one call of the clock, however many more than a chunk there are", async () => {
    const { id, firstNumber } = await createApplication();
    const count = 2 * DUE_CHUNK_ROWS + 100;
    // Digests come in the opposite order of rows and numbers.
    const places = "WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ?3)";
    const [number, digest] = ["7000000000 + ?2 + n", "printf('%064d', ?2 + ?3 - n)"];
    for (const insert of [
      `invitation (digest, application_id, number, state, creator_device, expires_at, expires_at_time, created_at)
       ${places} SELECT ${digest}, ?1, ${number}, 'pending', 'creator', '1970-01-01T00:00:01Z', 1000, 1 FROM place`,
      `badge (number, application_id, invitation) ${places} SELECT ${number}, ?1, ${digest} FROM place`,
    ]) {
      await runSql(`INSERT INTO ${insert}`, id, firstNumber, count);
    }
    await wake({ id });
    const states = homeDatabase().prepare(
      "SELECT state, count(*) AS n FROM invitation WHERE application_id = ?1 GROUP BY 1",
    );
    expect((await states.bind(id).all()).results).toEqual([{ state: "expired", n: count }]);
    expect(await badgeRows({ id })).toEqual([]);
  });
});

describe("blocking a user with many badges of maximal metadata (contract section 12)", () => {
  const BADGES = 6 * USER_CHUNK_BADGES;

  it("revokes all of them, while others get badges", async () => {
    const application = await crowded(BADGES);
    let isBlocked = false;
    const blocked = block(application, "mallory").finally(() => {
      isBlocked = true;
    });
    let others = 0;
    while (!isBlocked) {
      await issueTo(application, `other-${others}`, "bob");
      others++;
    }
    const { status, body } = await blocked;
    expect(status).toBe(200);
    expect(body.revoked).toHaveLength(BADGES);
    // One at least after each chunk.
    expect(others).toBeGreaterThanOrEqual(BADGES / USER_CHUNK_BADGES);
    const rows = await badgeRows(application);
    expect(rows.filter(({ userId, state }) => userId === "mallory" && state !== "revoked")).toEqual([]);
    expect(rows.filter(({ userId, state }) => userId === "bob" && state !== "active")).toEqual([]);
  });

  it("is finished by the clock when the caller is gone after the first chunk", async () => {
    const application = await crowded(BADGES);
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
    expect(body.revoked).toHaveLength(BADGES);
  });
});

describe("a block whose response is lost (contract section 12)", () => {
  const ONCE = { name: "once", times: 1, error: LOST, isOvercome: true };
  const send = (application: TestApplication, bindings: Partial<Env>) => {
    const init = { method: "PATCH", headers: serverHeaders(application) };
    return callWith(bindings, new Request("https://badges.example/v1/users/alice/block", init));
  };

  it.each(["the object", "D1"])("on the way from %s returns the numbers that it revoked", async (from) => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const lose = failing(ONCE, "after");
    if (from === "D1") await aroundObjectD1(application, () => failingTrips(ENTRY, ONCE, "after"));
    const ALLOCATOR = aroundAllocators((_, call) => (from === "D1" ? call() : lose(call)));
    expect(await send(application, { ALLOCATOR })).toMatchObject({ status: 200, body: { revoked: [number] } });
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
