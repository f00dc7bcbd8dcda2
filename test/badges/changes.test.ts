import { describe, expect, it } from "vitest";
import { z } from "zod";
import { claim, invite } from "../invitations/support/calls.ts";
import { ahead, DAY, MINUTE, moveClock, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callServer, requestBadge } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";
import { block, getBadge, issueTo, runSweep, setEnd, takeStep, unblock } from "./life-support.ts";

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
  #cursor = "";
  #lastChange = 0;

  constructor(application: TestApplication, perPage = 100) {
    this.#application = application;
    this.#perPage = perPage;
  }

  /** Reads until nothing more follows. @returns the pages */
  async follow(): Promise<Change[][]> {
    const pages: Change[][] = [];
    for (let more = true; more; ) {
      const path = `/v1/changes?per_page=${this.#perPage}${this.#cursor && `&cursor=${this.#cursor}`}`;
      const answer = await callServer(this.#application, "GET", path);
      const read = page.parse(answer.body);
      for (const change of read.changes) {
        // Nothing twice, nothing out of order.
        expect(change.change).toBeGreaterThan(this.#lastChange);
        this.#lastChange = change.change;
        this.copy.set(change.id, change);
      }
      this.#cursor = answer.headers.get("pagination-cursor") ?? "";
      expect(this.#cursor).toMatch(/^[\w-]+$/);
      pages.push(read.changes);
      more = read.more;
    }
    return pages;
  }

  /** The copy is what GET /v1/badges/{id} says of every badge that was ever issued. */
  async expectExact(): Promise<void> {
    const issued = (await badgeRows(this.#application)).filter(({ ordinal }) => ordinal !== null);
    const numbers = issued.map(({ number }) => String(number));
    expect([...this.copy.keys()].sort()).toEqual(numbers.sort());
    for (const number of numbers) {
      const { change: _, ...badge } = this.copy.get(number) ?? { change: 0 };
      expect(badge).toEqual((await getBadge(this.#application, number)).body);
    }
  }
}

useQuietLog();
useStandingClock();

describe("GET /v1/changes (contract section 13)", () => {
  it("the feed lists every badge once, in its present state, by its last change, even after a clock went back", async () => {
    const application = await createApplication();
    const first = await issueTo(application, "phone-1", "alice");
    const second = await issueTo(application, "phone-2", "bob");
    moveClock(-DAY);
    await takeStep(application, first, "suspend");
    const issuedAt = ahead(DAY);
    expect((await callServer(application, "GET", "/v1/changes")).body).toEqual({
      changes: [
        { id: second, userId: "bob", state: "active", change: 2, issuedAt, changedAt: issuedAt },
        { id: first, userId: "alice", state: "suspended", change: 3, issuedAt, changedAt: ahead(0) },
      ],
      more: false,
    });
  });

  it("the feed shows each kind of change once, and nothing when nothing has changed", async () => {
    const application = await createApplication();
    const follower = new Follower(application);
    const seen = async () => (await follower.follow()).flat().map(({ id, state }) => `${id} ${String(state)}`);
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
    await takeStep(application, id, "resume");
    expect(await seen()).toEqual([`${id} active`]);
    await setEnd(application, id, ahead(MINUTE));
    expect(await seen()).toEqual([`${id} active`]);
    expect(follower.copy.get(id)?.expiresAt).toBe(ahead(MINUTE));
    moveClock(MINUTE);
    await runSweep();
    expect(await seen()).toEqual([`${id} expired`]);
    await setEnd(application, id, null);
    expect(await seen()).toEqual([`${id} active`]);
    const { token, number } = await invite(application);
    expect(await seen()).toEqual([]);
    await claim(application, "phone", "alice", token);
    expect(await seen()).toEqual([`${id} replaced`, `${number} active`]);
    const other = await issueTo(application, "another", "alice");
    await block(application, "alice");
    await unblock(application, "alice");
    expect(await seen()).toEqual([`${number} revoked`, `${other} revoked`]);
    await follower.expectExact();
  });

  it("the feed returns everything that has changed since a cursor of any age; `more` says whether a page follows", async () => {
    const application = await createApplication();
    const numbers: string[] = [];
    for (let place = 0; place < 6; place++) numbers.push(await issueTo(application, `phone-${place}`, "alice"));
    const followers = [1, 2, 5, 6, 7].map((perPage) => ({ perPage, follower: new Follower(application, perPage) }));
    const expectPages = async (expected: readonly string[]) => {
      for (const { perPage, follower } of followers) {
        const pages = await follower.follow();
        expect(pages.flat().map(({ id }) => id)).toEqual(expected);
        expect(pages, `${perPage} a page`).toHaveLength(Math.ceil(expected.length / perPage));
      }
    };
    await expectPages(numbers);
    moveClock(200 * DAY);
    await runSweep();
    const [first = "", second = ""] = numbers;
    for (const number of [first, second, first]) await takeStep(application, number, "suspend");
    await takeStep(application, first, "resume");
    await expectPages([second, first]);
  });
});
