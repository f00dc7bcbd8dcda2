import { describe, expect, it } from "vitest";
import { z } from "zod";
import { pageChanges } from "../../src/worker/badges/changes.ts";
import { changeBadge } from "../../src/worker/badges/transitions.ts";
import { claim, invite, outcome } from "../invitations/support/calls.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { testContext } from "../support/context.ts";
import { type Answer, callServer, requestBadge, serverHeaders } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";
import { block, issueTo, runSweep, setEnd, takeStep, unblock, withBadge } from "./life-support.ts";
import { inParallel, requestQuietly } from "./support.ts";

const BY_SERVER = { actor: { kind: "server" } } as const;

const page = z.object({
  changes: z.array(z.looseObject({ id: z.string(), change: z.number(), changedAt: z.string() })),
  more: z.boolean(),
});

type Change = z.infer<typeof page>["changes"][number];

/** What an application's server keeps by following GET /v1/changes (contract section 13). */
class Follower {
  readonly #application: TestApplication;
  readonly #perPage: number;
  readonly copy = new Map<string, Change>();
  cursor: string | null = null;
  /** How often a cursor had expired, so that everything was read again. */
  restarts = 0;
  #lastChange = 0;

  constructor(application: TestApplication, perPage = 100) {
    this.#application = application;
    this.#perPage = perPage;
  }

  /** Reads one page. @returns it, or null when the cursor has expired */
  async read(): Promise<z.infer<typeof page> | null> {
    const cursor = this.cursor === null ? "" : `&cursor=${this.cursor}`;
    const answer = await this.#get(`/v1/changes?per_page=${this.#perPage}${cursor}`);
    if (answer.status === 410) {
      expect(answer.body).toEqual({ error: "EXPIRED_CURSOR" });
      this.#startAgain();
      return null;
    }
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    const { changes, more } = page.parse(answer.body);
    expect(changes.length).toBeLessThanOrEqual(this.#perPage);
    for (const change of changes) {
      // Nothing twice, nothing out of order.
      expect(change.change).toBeGreaterThan(this.#lastChange);
      this.#lastChange = change.change;
      this.copy.set(change.id, change);
    }
    this.cursor = answer.headers.get("pagination-cursor");
    expect(this.cursor).toMatch(/^[\w-]+$/);
    return { changes, more };
  }

  /** Reads until nothing more follows. @returns what it read since the last restart */
  async follow(): Promise<Change[]> {
    let read: Change[] = [];
    for (;;) {
      const found = await this.read();
      if (found === null) read = [];
      else read.push(...found.changes);
      if (found?.more === false) return read;
    }
  }

  /** The copy is what GET /v1/badges/{id} says of every badge that was ever issued. */
  async expectExact(): Promise<void> {
    const issued = (await badgeRows(this.#application)).filter(({ ordinal }) => ordinal !== null);
    const numbers = issued.map(({ number }) => String(number));
    expect([...this.copy.keys()].sort()).toEqual(numbers.sort());
    for (const number of numbers) {
      const { body } = await this.#get(`/v1/badges/${number}`);
      const { change: _, ...badge } = this.copy.get(number) ?? { change: 0 };
      expect(badge).toEqual(body);
    }
  }

  #get(path: string): Promise<Answer> {
    const headers = serverHeaders(this.#application);
    return callWith({}, new Request(`https://badges.example${path}`, { headers }));
  }

  #startAgain(): void {
    this.copy.clear();
    this.cursor = null;
    this.#lastChange = 0;
    this.restarts++;
  }
}

useQuietLog();
useStandingClock();

describe("GET /v1/changes (contract section 13)", () => {
  it("the feed lists every badge once, in its present state, in the order of its last change", async () => {
    const application = await createApplication();
    const first = await issueTo(application, "phone-1", "alice");
    const second = await issueTo(application, "phone-2", "bob");
    moveClock(SECOND);
    await takeStep(application, first, "suspend");
    const { status, body } = await callServer(application, "GET", "/v1/changes");
    expect(status).toBe(200);
    const issuedAt = ahead(-SECOND);
    expect(body).toEqual({
      changes: [
        { id: second, userId: "bob", state: "active", change: 2, issuedAt, changedAt: issuedAt },
        { id: first, userId: "alice", state: "suspended", change: 3, issuedAt, changedAt: ahead(0) },
      ],
      more: false,
    });
  });

  it("`more` says whether a page follows, for every page size", async () => {
    const application = await createApplication();
    const numbers: string[] = [];
    for (let place = 0; place < 6; place++) numbers.push(await issueTo(application, `phone-${place}`, "alice"));
    for (const perPage of [1, 2, 3, 5, 6, 7]) {
      const follower = new Follower(application, perPage);
      const pages: string[][] = [];
      for (let more = true; more; ) {
        const page = await follower.read();
        pages.push((page?.changes ?? []).map(({ id }) => id));
        more = page?.more ?? false;
      }
      expect(pages.flat()).toEqual(numbers);
      expect(pages).toHaveLength(Math.ceil(6 / perPage));
    }
  });

  it("the feed responds 422 to a malformed cursor or page size", async () => {
    const { application } = await withBadge();
    const list = await callServer(application, "GET", "/v1/badges?per_page=1");
    expect(list.status).toBe(200);
    const follower = new Follower(application);
    await follower.follow();
    const good = String(follower.cursor);
    const ofLists = btoa("after:1").replaceAll("=", "");
    for (const cursor of ["nonsense", "%20", `${good}A`, good.slice(1), `${good}%3D`, ofLists, "a".repeat(5000)]) {
      expect(outcome(await callServer(application, "GET", `/v1/changes?cursor=${cursor}`))).toBe("422 INVALID_CURSOR");
    }
    for (const perPage of ["0", "-1", "x", "1.5"]) {
      const answer = await callServer(application, "GET", `/v1/changes?per_page=${perPage}`);
      expect(outcome(answer)).toBe("422 INVALID_PER_PAGE");
    }
    expect(outcome(await callServer(application, "GET", "/v1/changes?per_page=100000"))).toBe("200");
    expect(outcome(await callServer(application, "GET", `/v1/changes?cursor=${good}`))).toBe("200");
  });

  it("the feed shows each kind of change once, and nothing when nothing has changed", async () => {
    const application = await createApplication();
    const follower = new Follower(application);
    const seen = async () => (await follower.follow()).map(({ id, state }) => `${id} ${String(state)}`);
    // With a cursor on the empty page, too.
    expect(await seen()).toEqual([]);
    const id = await issueTo(application, "phone", "alice");
    expect(await seen()).toEqual([`${id} active`]);
    const login = (os: string) => requestBadge(application, "phone", { userId: "alice", metadata: { os } });
    await login("iOS");
    expect(await seen()).toEqual([`${id} active`]);
    expect(follower.copy.get(id)?.metadata).toEqual({ os: "iOS" });
    await login("iOS");
    expect(await seen()).toEqual([]);
    await takeStep(application, id, "suspend");
    expect(await seen()).toEqual([`${id} suspended`]);
    await takeStep(application, id, "suspend");
    expect(await seen()).toEqual([]);
    await takeStep(application, id, "resume");
    expect(await seen()).toEqual([`${id} active`]);
    await setEnd(application, id, ahead(MINUTE));
    expect(await seen()).toEqual([`${id} active`]);
    expect(follower.copy.get(id)?.expiresAt).toBe(ahead(MINUTE));
    moveClock(MINUTE);
    await runSweep();
    expect(await seen()).toEqual([`${id} expired`]);
    await runSweep();
    expect(await seen()).toEqual([]);
    await setEnd(application, id, null);
    expect(await seen()).toEqual([`${id} active`]);
    const { token, number } = await invite(application);
    expect(await seen()).toEqual([]);
    await claim(application, "phone", "alice", token);
    expect(await seen()).toEqual([`${id} replaced`, `${number} active`]);
    await takeStep(application, String(number), "revoke");
    expect(await seen()).toEqual([`${number} revoked`]);
    const other = await issueTo(application, "another", "alice");
    await block(application, "alice");
    expect(await seen()).toEqual([`${other} revoked`]);
    await unblock(application, "alice");
    expect(await seen()).toEqual([]);
    await follower.expectExact();
  });

  it("the feed returns everything that has changed since an old cursor", async () => {
    const application = await createApplication();
    const numbers = [];
    for (let place = 0; place < 5; place++) numbers.push(await issueTo(application, `phone-${place}`, "alice"));
    const follower = new Follower(application, 2);
    await follower.follow();
    for (let day = 0; day < 5; day++) {
      moveClock(40 * DAY);
      await runSweep();
      await takeStep(application, numbers[day % 2] ?? "", day < 4 ? "suspend" : "revoke");
    }
    const late = await issueTo(application, "late", "bob");
    expect((await follower.follow()).map(({ id }) => id)).toEqual([numbers[1], numbers[0], late]);
    expect(follower.restarts).toBe(0);
    await follower.expectExact();
  });

  it("the feed follows the order of commits, even when clocks differ", async () => {
    const application = await createApplication();
    const numbers = [];
    for (let place = 0; place < 4; place++) numbers.push(await issueTo(application, `phone-${place}`, "alice"));
    const follower = new Follower(application);
    await follower.follow();
    const offsets = [-DAY, HOUR, -2 * DAY, 0];
    for (const [place, number] of numbers.entries()) {
      const { context } = testContext({ now: () => Date.now() + (offsets[place] ?? 0) });
      await changeBadge(
        context,
        application.id,
        { number: Number(number), transition: { kind: "suspend" }, ifChange: null, ownedBy: null },
        BY_SERVER,
      );
      expect((await follower.follow()).map(({ id }) => id)).toEqual([number]);
    }
    await follower.expectExact();
  });

  it("the feed shows a recorded expiry even if the clock is behind", async () => {
    const { application, number: id } = await withBadge();
    await setEnd(application, id, ahead(-SECOND));
    const { context } = testContext({ now: () => Date.now() - MINUTE });
    const { changes } = await pageChanges(context, application.id, null, 10);
    expect(changes.map(({ state }) => state)).toEqual(["expired"]);
  });

  it("the feed skips and repeats nothing during concurrent writes", async () => {
    const application = await createApplication();
    const numbers = await inParallel(8, (place) => issueTo(application, `phone-${place}`, `user-${place % 3}`));
    const followers = [new Follower(application, 1), new Follower(application, 3), new Follower(application)];
    let isWriting = true;
    const reading = followers.map(async (follower) => {
      for (let page = 0; isWriting && page < 500; page++) {
        const { changes } = (await follower.read()) ?? { changes: [] };
        if (changes.length === 0) await scheduler.wait(5);
      }
    });
    const number = (place: number) => numbers[place % 8] ?? "";
    const sent = await inParallel(60, async (place) => {
      await scheduler.wait(place);
      switch (place % 6) {
        case 0:
          return requestQuietly(application, `new-${place}`, { userId: "new" });
        case 1:
          return takeStep(application, number(place), "suspend");
        case 2:
          return takeStep(application, number(place - 1), "resume");
        case 3:
          return requestQuietly(application, `new-${place - 3}`, { userId: "new", metadata: { os: String(place) } });
        case 4:
          return setEnd(application, number(place), ahead(place * HOUR));
        default:
          return place > 50 ? block(application, "user-1") : runSweep();
      }
    }).finally(() => {
      isWriting = false;
    });
    expect(sent).toHaveLength(60);
    await Promise.all(reading);
    for (const follower of followers) {
      await follower.follow();
      expect(follower.restarts).toBe(0);
      await follower.expectExact();
    }
  });
});
