import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { Application } from "../../src/worker/applications/registry.ts";
import { StatusLists } from "../../src/worker/badges/status-copies.ts";
import { readStatusList } from "../../src/worker/badges/status-list.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { findInactive } from "../../src/worker/storage/status-lists.ts";
import { newAddress } from "../support/address.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { billOf } from "../support/bill.ts";
import { testContext } from "../support/context.ts";
import { type AroundTrip, aroundD1, type Statement } from "../support/d1.ts";
import { homeDatabase } from "../support/home.ts";
import { isSettled, StandingTimers } from "../support/timers.ts";
import { issueTo, takeStep } from "./life-support.ts";
import { claimsOf, entriesOf, indexOn } from "./status-support.ts";

/** The half second that a cache has passes when a test says so. */
let timers: StandingTimers;

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
  timers = new StandingTimers();
});

afterEach(() => {
  vi.restoreAllMocks();
  timers.stop();
});

/** Of the clock: what the service waits for has all the time it needs. */
const passSeconds = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1000);

/** An isolate that has just started, in this data centre unless it is given another cache; its queries of lists are counted. */
async function newIsolate(
  application: TestApplication,
  { edgeCache = caches.default, around }: { edgeCache?: Cache; around?: AroundTrip } = {},
) {
  let built = 0;
  const db = new Database(
    aroundD1(homeDatabase(), (statements, send) => {
      built++;
      return around ? around(statements, send) : send();
    }),
  );
  const statusLists = new StatusLists();
  const { context, deferred } = testContext({ statusLists, edgeCache });
  const registered: Application | undefined = await context.registry.findFresh(context.db, application.id, Date.now());
  if (!registered) throw new Error("the application is there");
  return {
    statusLists,
    builds: () => built,
    /** @returns the list, once it is in the cache too */
    async read(list = 0): Promise<string> {
      const jwt = await readStatusList({ ...context, db }, registered, list, newAddress());
      await Promise.all(deferred);
      return jwt;
    },
  };
}

/** A cache of another data centre, of which `behave` decides what it does. */
const cacheThat = (behave: Partial<Pick<Cache, "match" | "put">>): Cache => ({
  match: async () => undefined,
  put: async () => {},
  delete: async () => false,
  ...behave,
});

/** An application with one badge, and what a list says of it. */
async function tenant() {
  const application = await createApplication({ statusList: true });
  const number = await issueTo(application, "phone", "alice");
  const { idx } = await indexOn(application, "phone");
  return { application, number, valueIn: async (jwt: string) => (await entriesOf(jwt))(idx) };
}

describe("a list is at most 30 seconds old when it is sent (contract section 14)", () => {
  it("by an isolate that built it", async () => {
    const { application, number, valueIn } = await tenant();
    const isolate = await newIsolate(application);
    expect(await valueIn(await isolate.read())).toBe(0);
    await takeStep(application, number, "suspend");
    passSeconds(10);
    expect(await valueIn(await isolate.read())).toBe(0);
    expect(isolate.builds()).toBe(1);
    passSeconds(20);
    expect(await valueIn(await isolate.read())).toBe(2);
    expect(isolate.builds()).toBe(2);
  });

  it("by an isolate that took another's from the data centre's cache: its age counts from when it was built", async () => {
    const { application, number, valueIn } = await tenant();
    const [builder, taker] = [await newIsolate(application), await newIsolate(application)];
    const first = await builder.read();
    await takeStep(application, number, "revoke");
    passSeconds(15);
    expect(await taker.read()).toBe(first);
    expect(taker.builds()).toBe(0);
    passSeconds(15);
    expect(await valueIn(await taker.read())).toBe(1);
    expect(taker.builds()).toBe(1);
  });

  it("when the cache keeps a copy for longer than it was told to", async () => {
    const { application, number, valueIn } = await tenant();
    const kept = new Map<unknown, Response>();
    const edgeCache = cacheThat({
      match: async (uri) => kept.get(uri)?.clone(),
      put: async (uri, response) => void kept.set(uri, response),
    });
    await (await newIsolate(application, { edgeCache })).read();
    // The list, and that there is no next one.
    expect(kept.size).toBe(2);
    await takeStep(application, number, "revoke");
    passSeconds(30);
    expect(await valueIn(await (await newIsolate(application, { edgeCache })).read())).toBe(1);
  });

  it("when the clock jumps back: a copy from the time to come is not used", async () => {
    const { application, number, valueIn } = await tenant();
    const isolate = await newIsolate(application);
    await isolate.read();
    await takeStep(application, number, "revoke");
    passSeconds(-3600);
    expect(await valueIn(await isolate.read())).toBe(1);
  });

  it("and says how old: its iat is from before D1 was asked", async () => {
    const { application } = await tenant();
    const before = Math.floor(Date.now() / 1000);
    const slow: AroundTrip = async (_, send) => {
      const result = await send();
      passSeconds(7);
      return result;
    };
    expect(claimsOf(await (await newIsolate(application, { around: slow })).read()).iat).toBe(before);
  });
});

describe("copies of lists", () => {
  it("include the answer that there is no next list, which every door asks for, while nobody can begin one", async () => {
    const { application } = await tenant();
    const poll = async (isolate: Awaited<ReturnType<typeof newIsolate>>) => {
      await isolate.read();
      await expect(isolate.read(1)).rejects.toMatchObject({ code: "UNKNOWN_STATUSLIST" });
      return isolate.builds();
    };
    const first = await newIsolate(application);
    expect(await poll(first)).toBe(1);
    passSeconds(19);
    expect(await poll(first)).toBe(1);
    expect(await poll(await newIsolate(application))).toBe(0);
    // Fewer badges than 32,768 fit into the list now.
    await homeDatabase()
      .prepare("UPDATE badge SET position = 131071 - 32767 WHERE application_id = ?")
      .bind(application.id)
      .run();
    passSeconds(1);
    expect(await poll(first)).toBe(2);
    passSeconds(1);
    await expect(first.read(1)).rejects.toMatchObject({ code: "UNKNOWN_STATUSLIST" });
    expect(first.builds()).toBe(3);
    await expect((await newIsolate(application)).read(1)).rejects.toMatchObject({ code: "UNKNOWN_STATUSLIST" });
    // Guessing fills no cache.
    const put = vi.spyOn(caches.default, "put");
    await expect(first.read(3)).rejects.toMatchObject({ code: "UNKNOWN_STATUSLIST" });
    expect(put).not.toHaveBeenCalled();
  });

  it("are kept by address: no application gets another's, and no list another list's", async () => {
    const [one, other] = [await tenant(), await tenant()];
    await takeStep(one.application, one.number, "revoke");
    await homeDatabase()
      .prepare("UPDATE badge SET position = 131072 WHERE number = ?")
      .bind(Number(other.number))
      .run();
    const isolates = [
      await newIsolate(one.application),
      await newIsolate(other.application),
      await newIsolate(other.application),
    ];
    const lists = await Promise.all(isolates.map((isolate, index) => isolate.read(index === 2 ? 1 : 0)));
    expect(lists.map((jwt) => claimsOf(jwt).sub)).toEqual(
      [`${one.application.id}/status/0`, `${other.application.id}/status/0`, `${other.application.id}/status/1`].map(
        (path) => `http://localhost:8787/v1/applications/${path}`,
      ),
    );
    for (const [index, isolate] of isolates.entries())
      expect(await isolate.read(index === 2 ? 1 : 0)).toBe(lists[index]);
    expect(isolates.map((isolate) => isolate.builds())).toEqual([1, 1, 1]);
  });

  it.each([
    ["fails", cacheThat({ match: () => Promise.reject(new Error("no")), put: () => Promise.reject(new Error("no")) })],
    ["has something else", cacheThat({ match: async () => new Response("something else") })],
  ])("are not needed: when the data centre's cache %s, a list is built", async (_, edgeCache) => {
    vi.spyOn(console, "warn").mockImplementation(() => {});
    const { application, valueIn } = await tenant();
    const isolate = await newIsolate(application, { edgeCache });
    expect(await valueIn(await isolate.read())).toBe(0);
    expect(isolate.builds()).toBe(1);
  });

  it("are not waited for when the data centre's cache never responds: after half a second a list is built", async () => {
    const { application, valueIn } = await tenant();
    const hang = vi.fn(() => new Promise<never>(() => {}));
    const isolate = await newIsolate(application, { edgeCache: cacheThat({ match: hang, put: hang }) });
    vi.spyOn(console, "warn").mockImplementation(() => {});
    const reading = isolate.read();
    await timers.pass(499, () => hang.mock.calls.length === 1);
    expect([await isSettled(reading), isolate.builds()]).toEqual([false, 0]);
    await timers.pass(1);
    // It is put there, and that there is no next one.
    await timers.pass(500, () => hang.mock.calls.length === 3);
    expect(await valueIn(await reading)).toBe(0);
    expect(isolate.builds()).toBe(1);
  });

  it("are built once for everybody who asks at the same time", async () => {
    const { application } = await tenant();
    const isolate = await newIsolate(application);
    const lists = await Promise.all(Array.from({ length: 50 }, () => isolate.read()));
    expect(new Set(lists).size).toBe(1);
    expect(isolate.builds()).toBe(1);
  });

  it("are built by the next who asks when D1 failed the first", async () => {
    const { application, valueIn } = await tenant();
    let failures = 1;
    const around: AroundTrip = (_, send) => (failures-- > 0 ? Promise.reject(new Error("D1 is overloaded")) : send());
    const isolate = await newIsolate(application, { around });
    const [first, second] = await Promise.allSettled([isolate.read(), isolate.read()]);
    expect(first.status).toBe("rejected");
    expect(second.status === "fulfilled" && (await valueIn(second.value))).toBe(0);
  });

  it("are not waited for without end: a request whose caller hung up never finishes", async () => {
    const { application, valueIn } = await tenant();
    const isolate = await newIsolate(application);
    isolate.statusLists.building.set(`http://localhost:8787/v1/applications/${application.id}/status/0`, {});
    expect(await valueIn(await isolate.read())).toBe(0);
  });

  it("are built by one more request every two seconds while D1 is slow, not by everybody who waits", async () => {
    const { application, valueIn } = await tenant();
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const isolate = await newIsolate(application, { around: (_, send) => answered.then(send) });
    const lists = Promise.all(Array.from({ length: 100 }, () => isolate.read()));
    for (let tries = 0; isolate.builds() < 2 && tries < 100; tries++) await scheduler.wait(50);
    await scheduler.wait(500);
    expect(isolate.builds()).toBe(2);
    answer();
    expect(await Promise.all((await lists).map(valueIn))).toEqual(Array.from({ length: 100 }, () => 0));
    expect(isolate.builds()).toBe(2);
  });
});

const explained = z.array(z.object({ detail: z.string() }));

describe("building a list reads the badges that are not active, and no other (contract section 14)", () => {
  /** Badges with the positions 1 to `count`; every hundredth has ended, in turn suspended, revoked, replaced or expired. */
  async function fill(application: TestApplication, count: number): Promise<void> {
    await homeDatabase()
      .prepare(
        `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ?3)
       INSERT INTO badge (number, application_id, device, user_id, signing_key_id, event_id, position, turn, state, expires_at, ended_at)
       SELECT 7000000000 + ?2 + n, ?1, 'd' || n, 'u' || n, 1, 'evt_' || n, n, 1,
         CASE n % 400 WHEN 0 THEN 'suspended' WHEN 100 THEN 'revoked' WHEN 200 THEN 'replaced' ELSE 'active' END,
         CASE WHEN n % 400 = 300 THEN 1000 WHEN n % 2 THEN 9000000000000 END,
         CASE WHEN n % 400 IN (100, 200) THEN 1000 WHEN n % 800 = 300 THEN 1000 END
       FROM place`,
      )
      .bind(application.id, application.firstNumber * 1_000_000, count)
      .run();
  }

  it("one row for each that is not active, by an index that has no other, and a few for the last position", async () => {
    const both = [await createApplication({ statusList: true }), await createApplication({ statusList: true })];
    const [application, other] = both.toSorted((one, another) => (one.id < another.id ? -1 : 1));
    if (!application || !other) throw new Error("there are two");
    await fill(application, 20_000);
    // Others that no query of this application's may read, the last in every index.
    await fill(other, 4000);
    const trips: { statements: readonly Statement[]; rowsRead: number }[] = [];
    const around: AroundTrip = async (statements, send) => {
      const result = await send();
      trips.push({ statements, rowsRead: (await billOf(statements, result)).rowsRead });
      return result;
    };
    const db = new Database(aroundD1(homeDatabase(), around));
    const range = { applicationId: application.id, first: 0, end: 131_072 };
    const { ended, paused, lastPosition } = await findInactive(db, range, Date.now());
    expect([ended.length, paused.length, lastPosition]).toEqual([100, 100, 20_000]);
    expect(trips).toHaveLength(1);
    // Besides the 200: the last positions of both kinds, each with the row after it, and what has expired of the other
    // application and is not noted yet, until the sweep notes it within a minute.
    expect(trips[0]?.rowsRead).toBe(200 + 4 + 5);
    const [{ sql, parameters } = { sql: "", parameters: [] }] = trips[0]?.statements ?? [];
    const plan = await homeDatabase()
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .bind(...parameters)
      .all();
    const details = explained.parse(plan.results).map(({ detail }) => detail);
    expect(details.filter((detail) => /badge|newest/.test(detail))).toEqual([
      "SEARCH badge USING COVERING INDEX badge_status (application_id=? AND position>? AND position<?)",
      "SEARCH badge USING INDEX badge_expiry (expires_at>? AND expires_at<?)",
      ...[1, 2].map(
        () => "SEARCH newest USING COVERING INDEX badge_page (application_id=? AND <expr>=? AND position>?)",
      ),
    ]);
    expect(details.filter((detail) => detail.startsWith("SCAN"))).toEqual(["SCAN inactive"]);
  });
});
