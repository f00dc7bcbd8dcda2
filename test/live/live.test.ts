import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { drizzle } from "drizzle-orm/d1";
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from "jose";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { makeSigningKey } from "../../src/shared/credentials.ts";
import { signingKey } from "../../src/shared/schema.ts";
import { Live } from "../../src/worker/live/live.ts";
import { reconcile } from "../allocator/support.ts";
import { issueTo, setEnd, takeStep } from "../badges/life-support.ts";
import { claimsOf, getList, holder, keysOf, moveBadge } from "../badges/status-support.ts";
import { signIn } from "../http/support/people.ts";
import { loseStorage, wake } from "../support/allocator.ts";
import { createApplication, type TestApplication, testSealer } from "../support/application.ts";
import { byEffort } from "../support/effort.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { callServer, serverHeaders } from "../support/http.ts";
import { restore, takeSnapshot } from "../support/restoration.ts";
import { isSettled, StandingTimers } from "../support/timers.ts";
import { until } from "../support/until.ts";
import {
  addDoor,
  changeOf,
  deltaOf,
  endLive,
  heldCalls,
  listen,
  liveOf,
  outcomeOf,
  ringLive,
  untilHeld,
  withBadge,
  withHeldDoor,
  withLists,
} from "./support.ts";

/** Badges that were revoked at these changes, with numbers of no range. */
const addEnded = (application: TestApplication, change: number, count: number) =>
  runSql(
    `WITH RECURSIVE place (n) AS (SELECT ?3 UNION ALL SELECT n + 1 FROM place WHERE n < ?3 + ?4 - 1)
     INSERT INTO badge (number, application_id, device, user_id, ordinal, login_sequence, state, ended_at, change, changed_at,
       status_change, signing_key_id, issued_at)
     SELECT ?2 + n, ?1, 'd' || n, 'u', n, 1, 'revoked', 1, n, 1, n, 1, 1 FROM place`,
    ...[application.id, 8_000_000_000_000 + 10_000 * application.firstNumber, change, count],
  );

/** A change of which the object is not told. Both rows together, since the object may look at any moment. */
const suspendUnreported = (application: TestApplication, number: string, change: number) => {
  const run = (sql: string, ...values: unknown[]) =>
    homeDatabase()
      .prepare(sql)
      .bind(...values);
  return homeDatabase().batch([
    run("UPDATE badge SET state = 'suspended', status_change = ?2, change = ?2 WHERE number = ?1", +number, change),
    run("UPDATE application_head SET last_change = ?2 WHERE application_id = ?1", application.id, change),
  ]);
};

const setChange = ({ id }: TestApplication, change: number) =>
  runSql("UPDATE application_head SET last_change = ?2, last_ordinal = 9999 WHERE application_id = ?1", id, change);

describe("GET /v1/live (contract section 26)", () => {
  it("GET /v1/live is held until a badge's status has changed, and says which, signed by the key of new badges", async () => {
    const application = await withLists();
    const door = await addDoor(application, "North");
    const { number, idx } = await holder(application, "a");
    await holder(application, "b");
    const have = await changeOf(application);
    const held = listen(door, `have=${have}`);
    await untilHeld(application, 1);
    await takeStep(application, number, "suspend");
    const answer = await held;
    const { sub, since, change, entries } = deltaOf(answer);
    expect({ since, entries }).toEqual({ since: have, entries: [[0, idx, 2]] });
    expect(change).toBeGreaterThan(have);
    expect(`${sub}/0`).toBe(claimsOf((await getList(application)).text).sub);
    expect(answer.headers.get("content-type")).toBe("application/statusdelta+jwt");
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const keys = await keysOf(application);
    expect(decodeProtectedHeader(answer.text)).toMatchObject({ alg: "ES256", typ: "statusdelta+jwt" });
    await jwtVerify(answer.text, createLocalJWKSet(keys), { typ: "statusdelta+jwt" });
  });

  it("a door that has no change, or lacks one, gets a response at once, with the present status of each badge", async () => {
    const application = await withLists();
    const door = await addDoor(application, "North");
    const one = await holder(application, "a");
    const two = await holder(application, "b");
    const three = await holder(application, "c");
    await takeStep(application, one.number, "suspend");
    await takeStep(application, two.number, "revoke");
    const first = deltaOf(await listen(door, "have=0"));
    expect(first.since).toBe(0);
    const entries = (...some: [idx: number, status: number][]) => new Set(some.map((entry) => [0, ...entry]));
    expect(new Set(first.entries)).toEqual(entries([one.idx, 2], [two.idx, 1]));
    expect(deltaOf(await listen(door))).toMatchObject({ since: 0, change: first.change });
    await takeStep(application, one.number, "resume");
    await setEnd(application, three.number, new Date(Date.now() - 1000).toISOString());
    const next = deltaOf(await listen(door, `have=${first.change}`));
    expect(next.since).toBe(first.change);
    expect(new Set(next.entries)).toEqual(entries([one.idx, 0], [three.idx, 2]));
  });

  it("a change of a badge in a later list is sent, also by an object that knew of one list", async () => {
    const { application, number, have } = await withBadge();
    // In the second list.
    await moveBadge(application, 131_073);
    await suspendUnreported(application, number, have + 1);
    const { entries } = deltaOf(await listen(serverHeaders(application), `have=${have}`));
    expect(entries).toEqual([[1, expect.any(Number), 2]]);
  });

  it("a change goes to all waiting calls with any secret of the application, and to no other application", async () => {
    const { application, number, have } = await withBadge();
    const other = await withLists();
    const callers = [
      await addDoor(application, "North"),
      await addDoor(application, "South"),
      serverHeaders(application),
      await signIn(application, "viewer"),
    ];
    const foreign = listen(await addDoor(other, "North"), "have=1");
    const held = callers.map((caller) => listen(caller, `have=${have}`));
    await untilHeld(application, callers.length);
    await takeStep(application, number, "revoke");
    const texts = (await Promise.all(held)).map(({ text }) => text);
    expect(new Set(texts).size).toBe(1);
    // It is ahead of its own application's D1.
    expect(deltaOf(await foreign)).toMatchObject({ since: 0, change: 0, entries: [] });
  });

  it("GET /v1/live gets 422 for a malformed `have`, before 404 where there are no lists", async () => {
    const door = await addDoor(await createApplication(), "North");
    for (const have of ["have=", "have=-1", "have=01", "have=9007199254740993", "have=1&have=1"]) {
      expect(outcomeOf(await listen(door, have))).toBe("422 INVALID_CURSOR");
    }
    expect(outcomeOf(await listen(door, "have=1"))).toBe("404 UNKNOWN_STATUSLIST");
  });

  it("a door's secret opens no other application, even where the isolate knows it", async () => {
    const [application, other] = [await withLists(), await withLists()];
    const doors = [await addDoor(application, "North"), await addDoor(other, "South")] as const;
    for (const door of doors) expect((await listen(door)).status).toBe(200);
    expect(outcomeOf(await listen({ ...doors[0], applicationid: other.id }))).toBe("401 INVALID_CREDENTIALS");
  });

  it("a door that lacks more than 2,000 changes, or has one that D1 lost, is told that it needs the lists", async () => {
    const { application, have } = await withBadge();
    const door = await addDoor(application, "North");
    await addEnded(application, 1000, 2000);
    await setChange(application, 2999);
    expect(deltaOf(await listen(door, `have=${have}`))).toMatchObject({ since: have, change: 2999 });
    expect(deltaOf(await listen(door, "have=3000"))).toMatchObject({ since: 2999, change: 2999, entries: [] });
    await addEnded(application, 3000, 1);
    await setChange(application, 3000);
    await ringLive(application);
    expect(deltaOf(await listen(door, "have=3001"))).toMatchObject({ since: 3000, change: 3000, entries: [] });
    expect(deltaOf(await listen(door, `have=${have}`))).toMatchObject({ since: 3000, change: 3000, entries: [] });
    expect(deltaOf(await listen(door, "have=1000")).entries).toHaveLength(2000);
  });

  it("doors with equal changes get one signed delta, of which 100 are kept: a door chooses what it lacks", async () => {
    const { application, number } = await withBadge();
    const door = await addDoor(application, "North");
    await takeStep(application, number, "suspend");
    await runSql("UPDATE badge SET status_change = 500 WHERE application_id = ?", application.id);
    await setChange(application, 500);
    const textOf = async (have: number) => (await listen(door, `have=${have}`)).text;
    // The object reads D1 again for earlier changes.
    await textOf(0);
    const first = await textOf(1);
    expect(await textOf(1)).toBe(first);
    for (let have = 2; have <= 100; have++) await textOf(have);
    expect(await textOf(1)).toBe(first);
    for (let have = 101; have <= 200; have++) await textOf(have);
    expect(await textOf(1)).not.toBe(first);
  });

  it("a held call ends after 50 seconds without a change, signed by the key of new badges, also one that is new since the call began", async () => {
    const timers = new StandingTimers();
    onTestFinished(() => timers.stop());
    const { application, have } = await withBadge();
    const door = await addDoor(application, "North");
    // With this call, the Worker knows the door and the application for a minute.
    await listen(door);
    await timers.pass(15_000);
    const held = listen(door, `have=${have}`);
    await untilHeld(application, 1);
    const key = await makeSigningKey(await testSealer(), application.id);
    await drizzle(homeDatabase())
      .insert(signingKey)
      .values({ ...key, applicationId: application.id, createdAt: Date.now() });
    await timers.pass(49_999, () => timers.pending > 0);
    expect(await isSettled(held)).toBe(false);
    await timers.pass(1);
    const answer = await held;
    expect(deltaOf(answer)).toMatchObject({ change: have, entries: [] });
    expect(decodeProtectedHeader(answer.text).kid).toBe(key.kid);
  });

  it("a change is sent 250 ms after the first of several, and later ones of that time do not delay it", async () => {
    const { application, number, held } = await withHeldDoor();
    const { woken, first, second } = await runInDurableObject(liveOf(application), async (live, { storage }) => {
      const woken = Date.now();
      await live.wake();
      const first = Number(await storage.getAlarm());
      while (Date.now() === woken) await scheduler.wait(1);
      await live.wake();
      return { woken, first, second: Number(await storage.getAlarm()) };
    });
    expect(second).toBe(first);
    expect(first - woken).toBeGreaterThanOrEqual(250);
    // Sooner than the comparison that needs no wake-up.
    expect(first - woken).toBeLessThan(30_000);
    await takeStep(application, number, "suspend");
    expect(deltaOf(await held).entries).toHaveLength(1);
  });
});

describe("a door's secret (contract section 26)", () => {
  it.each(["its connection broke", "the object slept and then served it"])(
    "a door is listed with its last call also where %s, and the object ended soon after",
    async (how) => {
      const { application, number, have } = await withBadge();
      const door = await addDoor(application, "North");
      const listed = async () => (await callServer(application, "GET", "/v1/doors")).body.doors;
      // The storage has only this call: later ones of the next ten minutes are not written if they end well.
      await listen(door);
      const sql = "SELECT id FROM door_secret WHERE application_id = ?";
      const id = await homeDatabase().prepare(sql).bind(application.id).first("id");
      const listener = JSON.stringify({ door: { id, name: "North" }, have });
      const url = `https://live/?${new URLSearchParams({ application: application.id, listener })}`;
      const { webSocket } = await liveOf(application).fetch(url, { headers: { Upgrade: "websocket" } });
      webSocket?.accept();
      const before = await listed();
      expect(before).toMatchObject([{ change: have, isCurrent: true }]);
      if (how === "its connection broke") webSocket?.close(1001);
      else {
        await evictDurableObject(liveOf(application));
        await takeStep(application, number, "suspend");
      }
      await untilHeld(application, 0);
      if (how === "its connection broke") await evictDurableObject(liveOf(application));
      const [{ seenAt }] = z.tuple([z.looseObject({ seenAt: z.string() })]).parse(before);
      expect(await listed()).toMatchObject([{ seenAt, change: have }]);
    },
  );

  it("doors are listed by name, a page at a time, with their last call and whether they have called for a minute and have the last change, whether or not the object was woken", async () => {
    const { application, number, idx, have } = await withBadge();
    const doors = [await addDoor(application, "B"), await addDoor(application, "A"), await addDoor(application, "C")];
    const [b = {}, a = {}] = doors;
    const page = async (query = "") => callServer(application, "GET", `/v1/doors${query}`);
    expect((await page()).body.doors).toMatchObject(["A", "B", "C"].map((name) => ({ name, isCurrent: false })));
    const held = [listen(a, `have=${have}`), listen(b, `have=${have}`)];
    await untilHeld(application, 2);
    expect((await page()).body.doors).toMatchObject([
      { name: "A", change: have, isCurrent: true, seenAt: expect.any(String) },
      { name: "B", change: have, isCurrent: true },
      { name: "C", isCurrent: false },
    ]);
    const change = have + 1;
    await suspendUnreported(application, number, change);
    expect((await page()).body.doors).toMatchObject([{ isCurrent: false }, { isCurrent: false }, { isCurrent: false }]);
    await ringLive(application);
    for (const answer of await Promise.all(held)) {
      expect(deltaOf(answer)).toMatchObject({ since: have, change, entries: [[0, idx, 2]] });
    }
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const again = listen(a, `have=${change}`);
    await untilHeld(application, 1);
    vi.setSystemTime(Date.now() + 59_999);
    const first = await page("?per_page=1");
    expect(first.body.doors).toMatchObject([{ name: "A", change, isCurrent: true }]);
    const next = await page(`?per_page=2&cursor=${first.headers.get("pagination-cursor")}`);
    expect(next.body.doors).toMatchObject([{ name: "B", change: have, isCurrent: false }, { name: "C" }]);
    expect(next.headers.get("pagination-cursor")).toBeNull();
    vi.setSystemTime(Date.now() + 1);
    expect((await page("?per_page=1")).body.doors).toMatchObject([{ name: "A", change, isCurrent: false }]);
    await endLive(application);
    await again;
  });
});

const retireDoor = ({ id }: TestApplication, name: string) =>
  runSql("DELETE FROM door_secret WHERE application_id = ?1 AND name = ?2", id, name);

describe("a door's secret that was retired (contract section 26)", () => {
  it("a retired door's secret stops authenticating within half a minute, also where an isolate has seen it", async () => {
    const { application, number, have } = await withBadge();
    const [north, south] = [await addDoor(application, "North"), await addDoor(application, "South")];
    const held = [listen(north, `have=${have}`), listen(south, `have=${have}`)];
    await untilHeld(application, 2);
    await retireDoor(application, "North");
    await takeStep(application, number, "suspend");
    const [first, second] = (await Promise.all(held)).map(deltaOf);
    expect(first?.entries).toEqual(second?.entries);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 30_000, shouldAdvanceTime: true });
    onTestFinished(() => void vi.useRealTimers());
    for (const _ of [1, 2]) {
      expect(outcomeOf(await listen(north, `have=${first?.change}`))).toBe("401 INVALID_CREDENTIALS");
    }
  });

  it("a retired door's held call ends within half a minute; its secret is not taken for the one that it got since, nor is a secret newer than what the object has read", async () => {
    const { application, have, held } = await withHeldDoor();
    await retireDoor(application, "North");
    const renewed = listen(await addDoor(application, "North"), `have=${have}`);
    await untilHeld(application, 2);
    await ringLive(application);
    expect(outcomeOf(await held)).toBe("401 INVALID_CREDENTIALS");
    await untilHeld(application, 1);
    await takeStep(application, await issueTo(application, "other", "bob"), "suspend");
    expect(deltaOf(await renewed).entries).toHaveLength(1);
  });
});

it("calls from the 5,001st on get 503 with Retry-After; a door's next call takes the place of its own, and held ones are served (contract section 26)", async () => {
  const { application, number, have, door, held: own } = await withHeldDoor();
  // An object that has slept counts the calls anew.
  await evictDurableObject(liveOf(application));
  /** The object counts so many further calls. @returns until when */
  const holdMore = (calls: number) =>
    runInDurableObject(liveOf(application), (live) => {
      const context: DurableObjectState = Reflect.get(live, "ctx");
      const more = Array.from({ length: calls }, () => ({ readyState: WebSocket.OPEN }) as WebSocket);
      const get = context.getWebSockets.bind(context);
      const spy = vi.spyOn(context, "getWebSockets");
      spy.mockImplementation((tag) => (tag === undefined ? [...get(), ...more] : get(tag)));
      return () => spy.mockRestore();
    });
  const call = () => listen(serverHeaders(application), `have=${have}`);
  const endFull = await holdMore(4999);
  const refused = await call();
  expect([outcomeOf(refused), refused.headers.has("retry-after")]).toEqual(["503 UNAVAILABLE", true]);
  expect(outcomeOf(await listen(await addDoor(application, "South"), `have=${have}`))).toBe("503 UNAVAILABLE");
  const next = listen(door, `have=${have}`);
  expect(outcomeOf(await own)).toBe("429 RATE_LIMITED");
  endFull();
  const endOneLeft = await holdMore(4998);
  const two = [call(), call()];
  expect(outcomeOf(await Promise.race(two))).toBe("503 UNAVAILABLE");
  endOneLeft();
  await takeStep(application, number, "suspend");
  expect(deltaOf(await next).entries).toHaveLength(1);
  expect((await Promise.all(two)).map(({ status }) => status).toSorted()).toEqual([200, 503]);
});

it("doors get 503 when the object ends; all come back, and no change is lost to any (contract section 26)", {
  timeout: 120_000,
}, async () => {
  const half = byEffort(20, 1000);
  const { application, number, have } = await withBadge();
  const calls = (count: number) =>
    Array.from({ length: count }, () => listen(serverHeaders(application), `have=${have}`));
  const first = calls(2 * half);
  await untilHeld(application, 2 * half);
  await endLive(application);
  expect(new Set((await Promise.all(first)).map(outcomeOf))).toEqual(new Set(["503 UNAVAILABLE"]));
  // Half of them are back before the change, and half after it.
  const early = calls(half);
  await untilHeld(application, half);
  await takeStep(application, number, "suspend");
  for (const answer of await Promise.all([...early, ...calls(half)])) {
    expect(deltaOf(answer)).toMatchObject({ since: have, entries: [expect.anything()] });
  }
});

describe("doors and `reconcile --republish` (contract sections 21 and 26)", () => {
  it.each(["a republication", "the loss of its storage"])(
    "a door that first calls after %s must download the lists again, whichever it has",
    async (what) => {
      const application = await withLists();
      await takeStep(application, await issueTo(application, "phone", "alice"), "suspend");
      // Asked once, because lists are cached.
      const have = await changeOf(application);
      if (what === "a republication") await reconcile(application, { republish: true });
      else {
        await loseStorage(application);
        await wake(application);
      }
      const door = await addDoor(application, "North");
      for (const query of [`have=${have}`, ""]) {
        expect(deltaOf(await listen(door, query))).toMatchObject({ since: have + 1, entries: [] });
      }
    },
  );

  it("doors are told at once that they need the lists, and are then held again", async () => {
    const { application, number, have, door, held } = await withHeldDoor();
    // Nobody rings the alarm that compares twice a minute.
    expect(await reconcile(application, { republish: true })).toMatchObject({ state: "in-sync", republished: true });
    const told = deltaOf(await held);
    expect(told).toMatchObject({ since: have + 1, change: have + 1, entries: [] });
    for (const query of ["", `have=${have}`]) {
      expect(deltaOf(await listen(door, query))).toMatchObject({ since: told.since, change: told.change, entries: [] });
    }
    const next = listen(door, `have=${told.change}`);
    await untilHeld(application, 1);
    await ringLive(application);
    expect(await heldCalls(application)).toBe(1);
    await takeStep(application, number, "suspend");
    expect(deltaOf(await next)).toMatchObject({ since: told.change, entries: [expect.anything()] });
  });
});

it("doors are held while a restored D1 is behind, and have every change again when it has caught up (contract sections 21 and 26)", async () => {
  const application = await withLists();
  const door = await addDoor(application, "North");
  const [one, two] = [await issueTo(application, "phone", "alice"), await issueTo(application, "other", "bob")];
  const earlier = await changeOf(application);
  const snapshot = await takeSnapshot(application);
  await takeStep(application, one, "suspend");
  const first = deltaOf(await listen(door, `have=${earlier}`));
  expect(first.entries).toHaveLength(1);
  await takeStep(application, two, "revoke");
  await restore(application, snapshot);
  // The door's call has found D1 behind; the object reads D1 again when it has caught up.
  const alarm = vi.spyOn(Live.prototype, "alarm").mockResolvedValue();
  const held = listen(door, `have=${first.change}`);
  await until(() => expect(alarm).toHaveBeenCalled());
  await wake(application, true);
  alarm.mockRestore();
  await ringLive(application);
  const told = deltaOf(await held);
  expect(told).toMatchObject({ since: first.change, change: first.change + 1, entries: [expect.anything()] });
  const last = deltaOf(await listen(door, `have=${earlier}`));
  expect(last).toMatchObject({ since: earlier, change: first.change + 1 });
  expect(last.entries.map(([, , status]) => status).sort()).toEqual([1, 2]);
});
