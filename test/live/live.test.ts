import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { drizzle } from "drizzle-orm/d1";
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from "jose";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { makeSigningKey } from "../../src/shared/credentials.ts";
import { LIVE_HOLD_MILLISECONDS } from "../../src/shared/limits/live-limits.ts";
import { signingKey } from "../../src/shared/schema.ts";
import { setEnd, takeStep } from "../badges/life-support.ts";
import { claimsOf, getList, holder, keysOf } from "../badges/status-support.ts";
import { signIn } from "../http/support/people.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { createApplication, testSealer } from "../support/application.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { callServer, serverHeaders } from "../support/http.ts";
import { StandingTimers } from "../support/timers.ts";
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

useQuietLog();

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
    const [one, two, three] = [
      await holder(application, "a"),
      await holder(application, "b"),
      await holder(application, "c"),
    ];
    await takeStep(application, one.number, "suspend");
    await takeStep(application, two.number, "revoke");
    const first = deltaOf(await listen(door, "have=0"));
    expect(first.since).toBe(0);
    expect(new Set(first.entries)).toEqual(
      new Set([
        [0, one.idx, 2],
        [0, two.idx, 1],
      ]),
    );
    expect(deltaOf(await listen(door))).toMatchObject({ since: 0, change: first.change });
    await takeStep(application, one.number, "resume");
    await setEnd(application, three.number, new Date(Date.now() - 1000).toISOString());
    const next = deltaOf(await listen(door, `have=${first.change}`));
    expect(next.since).toBe(first.change);
    expect(new Set(next.entries)).toEqual(
      new Set([
        [0, one.idx, 0],
        [0, three.idx, 2],
      ]),
    );
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

  it("a held call that ends without a change is signed by the key of new badges, also one that is new since the call began", async () => {
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
    await timers.pass(LIVE_HOLD_MILLISECONDS, () => timers.pending > 0);
    const answer = await held;
    expect(deltaOf(answer)).toMatchObject({ change: have, entries: [] });
    expect(decodeProtectedHeader(answer.text).kid).toBe(key.kid);
  });

  it("GET /v1/live refuses calls as the contract's table says", async () => {
    const application = await withLists();
    const without = await createApplication();
    const door = await addDoor(application, "North");
    for (const have of [
      "have=",
      "have=-1",
      "have=01",
      "have=1.5",
      "have=x",
      "have=9007199254740993",
      "have=1&have=1",
    ]) {
      expect(`${have}: ${outcomeOf(await listen(door, have))}`).toBe(`${have}: 422 INVALID_CURSOR`);
    }
    expect(outcomeOf(await listen(await addDoor(without, "North"), "have=x"))).toBe("422 INVALID_CURSOR");
    expect(outcomeOf(await listen(serverHeaders(without), "have=1"))).toBe("404 UNKNOWN_STATUSLIST");
    const wrong = { applicationid: application.id, applicationsecret: "wrong" };
    expect(outcomeOf(await listen(wrong, "have=x"))).toBe("401 INVALID_CREDENTIALS");
    expect(outcomeOf(await listen({ applicationid: application.id }))).toBe("401 INVALID_CREDENTIALS");
    const elsewhere = { ...door, applicationid: without.id };
    expect(outcomeOf(await listen(elsewhere))).toBe("401 INVALID_CREDENTIALS");
  });

  it("a door's new call replaces its earlier one, which gets 429, and no other door's", async () => {
    const { application, number, have } = await withBadge();
    const [north, south] = [await addDoor(application, "North"), await addDoor(application, "South")];
    const neighbour = listen(south, `have=${have}`);
    await untilHeld(application, 1);
    const first = listen(north, `have=${have}`);
    await untilHeld(application, 2);
    const second = listen(north, `have=${have}`);
    expect(outcomeOf(await first)).toBe("429 RATE_LIMITED");
    await untilHeld(application, 2);
    await takeStep(application, number, "suspend");
    expect(deltaOf(await second).entries).toHaveLength(1);
    expect(deltaOf(await neighbour).entries).toHaveLength(1);
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

  it("the object finds changes in D1 without a wake-up", async () => {
    const { application, number, idx, have, held } = await withHeldDoor();
    // Together: the object may look at any moment.
    await homeDatabase().batch([
      homeDatabase()
        .prepare("UPDATE badge SET state = 'suspended', status_change = ?2, change = ?2 WHERE number = ?1")
        .bind(Number(number), have + 1),
      homeDatabase()
        .prepare("UPDATE application_head SET last_change = ?2 WHERE application_id = ?1")
        .bind(application.id, have + 1),
    ]);
    await ringLive(application);
    expect(deltaOf(await held)).toMatchObject({ since: have, change: have + 1, entries: [[0, idx, 2]] });
  });

  it("calls are held while D1 lacks changes since a restore", async () => {
    const { application, number } = await withBadge();
    await takeStep(application, number, "suspend");
    const set = (value: number) =>
      runSql("UPDATE application_head SET readable_from = ?2 WHERE application_id = ?1", application.id, value);
    await set(1_000_000);
    const held = listen(await addDoor(application, "North"));
    await untilHeld(application, 1);
    await ringLive(application);
    expect(await heldCalls(application)).toBe(1);
    await set(0);
    await ringLive(application);
    expect(deltaOf(await held).entries).toHaveLength(1);
  });

  it("a door that lacks more than 2,000 changes, or has one that D1 lost, is told that it needs the lists", async () => {
    const { application, have } = await withBadge();
    const door = await addDoor(application, "North");
    const add = (from: number, count: number) =>
      runSql(
        `WITH RECURSIVE place (n) AS (SELECT ?3 UNION ALL SELECT n + 1 FROM place WHERE n < ?3 + ?4 - 1)
        INSERT INTO badge (number, application_id, device, user_id, ordinal, login_sequence, state, ended_at, change, changed_at,
          status_change, signing_key_id, issued_at)
        SELECT ?2 + n, ?1, 'd' || n, 'u', 100 + n, 1, 'revoked', 1, 1000 + n, 1, 1000 + n, 1, 1 FROM place`,
        // Numbers of no range.
        ...[application.id, 8_000_000_000_000, from, count],
      );
    const setChange = (change: number) =>
      runSql(
        "UPDATE application_head SET last_change = ?2, last_ordinal = 9999 WHERE application_id = ?1",
        application.id,
        change,
      );
    await add(0, 2000);
    await setChange(2999);
    expect(deltaOf(await listen(door, `have=${have}`))).toMatchObject({ since: have, change: 2999 });
    expect(deltaOf(await listen(door, "have=3000"))).toMatchObject({ since: 2999, change: 2999, entries: [] });
    await add(2000, 1);
    await setChange(3000);
    await ringLive(application);
    expect(deltaOf(await listen(door, "have=3001"))).toMatchObject({ since: 3000, change: 3000, entries: [] });
    expect(deltaOf(await listen(door, `have=${have}`))).toMatchObject({ since: 3000, change: 3000, entries: [] });
    expect(deltaOf(await listen(door, "have=1000")).entries).toHaveLength(2000);
  });
});

describe("a door's secret (contract section 26)", () => {
  it("a door is listed as not current from the response of a change on, whether or not the object was woken", async () => {
    const { application, number, have, held } = await withHeldDoor();
    const doors = async () => (await callServer(application, "GET", "/v1/doors")).body.doors;
    expect(await doors()).toMatchObject([{ isCurrent: true }]);
    await runSql(
      `UPDATE badge SET state = 'suspended', status_change = ?2, change = ?2 WHERE number = ?1`,
      Number(number),
      have + 1,
    );
    await runSql("UPDATE application_head SET last_change = ?2 WHERE application_id = ?1", application.id, have + 1);
    expect(await doors()).toMatchObject([{ isCurrent: false, change: have }]);
    await ringLive(application);
    await held;
  });

  it("a door has a change at once also after one write of the object's alarm has failed", async () => {
    const { application, number, have } = await withBadge();
    const door = await addDoor(application, "North");
    await runInDurableObject(liveOf(application), (_, state) => {
      vi.spyOn(state.storage, "setAlarm").mockRejectedValueOnce(new Error("storage is overloaded"));
    });
    // 31 seconds ago: the alarm that was not set would have fired since.
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 31_000 });
    await listen(door, `have=${have}`);
    vi.useRealTimers();
    const held = listen(door, `have=${have}`);
    await untilHeld(application, 1);
    await takeStep(application, number, "suspend");
    expect(deltaOf(await held).entries).toHaveLength(1);
  });

  it.each([2000, 2001])(
    "a door that lacks %i changes is not current, though only the lists have that many",
    async (count) => {
      const { application, have, held } = await withHeldDoor();
      await runSql(
        `WITH RECURSIVE place (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place WHERE n < ?3 - 1)
       INSERT INTO badge (number, application_id, device, user_id, ordinal, login_sequence, state, ended_at, change, changed_at,
         status_change, signing_key_id, issued_at)
       SELECT ?2 + n, ?1, 'd' || n, 'u', 100 + n, 1, 'revoked', 1, 1000 + n, 1, 1000 + n, 1, 1 FROM place`,
        application.id,
        8_000_000_000_000 + count * 10_000,
        count,
      );
      await runSql(
        "UPDATE application_head SET last_change = ?2 WHERE application_id = ?1",
        application.id,
        999 + count,
      );
      const { body } = await callServer(application, "GET", "/v1/doors");
      expect(body.doors).toMatchObject([{ name: "North", change: have, isCurrent: false }]);
      await ringLive(application);
      await held;
    },
  );

  it("a door is listed with its last call also where the object slept during that call", async () => {
    const { application, number, have } = await withBadge();
    const door = await addDoor(application, "North");
    const listed = async () => (await callServer(application, "GET", "/v1/doors")).body.doors;
    // The storage has only this call: later ones of the next ten minutes are not written.
    await listen(door);
    const held = listen(door, `have=${have}`);
    await untilHeld(application, 1);
    const before = await listed();
    expect(before).toMatchObject([{ change: have, isCurrent: true }]);
    await evictDurableObject(liveOf(application));
    await takeStep(application, number, "suspend");
    await held;
    expect(await listed()).toEqual([{ ...z.tuple([z.looseObject({})]).parse(before)[0], isCurrent: false }]);
  });

  it("a door is listed with its last call also where its connection broke and the object ended soon after", async () => {
    const { application, have } = await withBadge();
    const door = await addDoor(application, "North");
    const listed = async () => (await callServer(application, "GET", "/v1/doors")).body.doors;
    // The storage has only this call: later ones of the next ten minutes are not written if they end well.
    await listen(door);
    const id = await homeDatabase()
      .prepare("SELECT id FROM door_secret WHERE application_id = ?")
      .bind(application.id)
      .first("id");
    const listener = JSON.stringify({ door: { id, name: "North" }, have });
    const url = `https://live/?${new URLSearchParams({ application: application.id, listener })}`;
    const { webSocket } = await liveOf(application).fetch(url, { headers: { Upgrade: "websocket" } });
    webSocket?.accept();
    const before = await listed();
    expect(before).toMatchObject([{ change: have }]);
    webSocket?.close(1001);
    await untilHeld(application, 0);
    await evictDurableObject(liveOf(application));
    expect(await listed()).toEqual(before);
  });

  it("doors are listed by name with their last call and whether they are current, a page at a time", async () => {
    const { application, number, have } = await withBadge();
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
    await takeStep(application, number, "suspend");
    const { change } = deltaOf((await Promise.all(held))[0] ?? { status: 0, headers: new Headers(), text: "" });
    expect((await page()).body.doors).toMatchObject([{ isCurrent: false }, { isCurrent: false }, { isCurrent: false }]);
    const again = listen(a, `have=${change}`);
    await untilHeld(application, 1);
    const first = await page("?per_page=1");
    expect(first.body.doors).toMatchObject([{ name: "A", change, isCurrent: true }]);
    const next = await page(`?per_page=2&cursor=${first.headers.get("pagination-cursor")}`);
    expect(next.body.doors).toMatchObject([{ name: "B", change: have, isCurrent: false }, { name: "C" }]);
    expect(next.headers.get("pagination-cursor")).toBeNull();
    await takeStep(application, number, "resume");
    await again;
  });

  it("a door that has not called for a minute is not current", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const calledAt = Date.now();
    const { application, held } = await withHeldDoor();
    const listed = async (milliseconds: number) => {
      vi.setSystemTime(calledAt + milliseconds);
      return (await callServer(application, "GET", "/v1/doors")).body.doors;
    };
    expect(await listed(59_999)).toMatchObject([{ isCurrent: true }]);
    expect(await listed(60_000)).toMatchObject([{ isCurrent: false }]);
    await endLive(application);
    await held;
  });
});
