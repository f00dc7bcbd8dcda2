import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { StatusListCache } from "../../src/worker/badges/status-lists/cache.ts";
import { StatusIndexes } from "../../src/worker/badges/status-lists/list-index.ts";
import { readStatusList } from "../../src/worker/badges/status-lists/read.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { saveStatusList } from "../../src/worker/storage/status-lists.ts";
import { newAddress } from "../support/address.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { billOf } from "../support/bill.ts";
import { testContext } from "../support/context.ts";
import { type AroundTrip, aroundD1 } from "../support/d1.ts";
import { isAbout } from "../support/faults.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { log } from "../support/log.ts";
import { isSettled, StandingTimers } from "../support/timers.ts";
import { takeStep, withBadge } from "./life-support.ts";
import { claimsOf, entriesOf, indexOn, inflate, moveBadge } from "./status-support.ts";

/** The half second that a cache has passes when a test says so. */
let timers: StandingTimers;

beforeEach(() => {
  timers = new StandingTimers();
});

afterEach(() => timers.stop());

/** Of the clock: what the service waits for has all the time it needs. */
const passSeconds = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1000);

/**
 * An isolate that has just started, in this data centre unless it is given another cache; its queries of lists are counted.
 *
 * @param around what it reads and writes of lists
 */
async function newIsolate(
  application: TestApplication,
  { edgeCache = caches.default, around }: { edgeCache?: Cache; around?: AroundTrip } = {},
) {
  let built = 0;
  const db = new Database(
    aroundD1(homeDatabase(), (statements, send) => {
      if (isAbout(statements, "FROM status_list")) built++;
      else if (!isAbout(statements, "INTO status_list")) return send();
      return around ? around(statements, send) : send();
    }),
  );
  const { context, deferred } = testContext({
    statusListCache: new StatusListCache(),
    statusIndexes: new StatusIndexes(),
    edgeCache,
  });
  return {
    builds: () => built,
    /** @returns the list, once it is in the cache too */
    async read(list = 0): Promise<string> {
      const jwt = await readStatusList({ ...context, db }, application.id, list, newAddress());
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
  const { application, number } = await withBadge({ statusList: true });
  const { idx } = await indexOn(application, "phone");
  return { application, number, valueIn: async (jwt: string) => (await entriesOf(jwt))(idx) };
}

describe("a list is at most 30 seconds old when it is sent (contract section 14)", () => {
  it("an isolate sends a list that it built for at most 30 seconds", async () => {
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

  it("the age of a list from the data centre's cache counts from when it was built", async () => {
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

  it("a cached list from the future is not used after the clock jumped back", async () => {
    const { application, number, valueIn } = await tenant();
    const isolate = await newIsolate(application);
    await isolate.read();
    await takeStep(application, number, "revoke");
    passSeconds(-3600);
    expect(await valueIn(await isolate.read())).toBe(1);
  });

  it("the iat of a list is from before D1 was read", async () => {
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

describe("copies of lists (contract section 14)", () => {
  it("each further list exists within a second of its first badge, and a door's probes cost no query while it cannot exist", async () => {
    const { application } = await tenant();
    const isolate = await newIsolate(application);
    const poll = async () => {
      await isolate.read();
      for (const list of [1, 2, 1_000_000]) {
        await expect(isolate.read(list)).rejects.toMatchObject({ code: "UNKNOWN_STATUSLIST" });
      }
      return isolate.builds();
    };
    expect(await poll()).toBe(1);
    passSeconds(19);
    expect(await poll()).toBe(1);
    // Fewer badges than 32,768 fit into the list now.
    await moveBadge(application, 131_071 - 32_767);
    passSeconds(1);
    expect(await poll()).toBe(2);
    passSeconds(1);
    expect(await poll()).toBe(3);
    await moveBadge(application, 131_072);
    passSeconds(1);
    expect(claimsOf(await isolate.read(1)).sub).toMatch(/\/status\/1$/);
  });

  it("cached lists are kept by address: no application gets another's, and no list another's", async () => {
    const [one, other] = [await tenant(), await tenant()];
    await moveBadge(other.application, 131_072);
    const lists = [
      [one, 0],
      [other, 0],
      [other, 1],
    ] as const;
    for (const [{ application }, list] of lists) {
      const isolate = await newIsolate(application);
      const jwt = await isolate.read(list);
      expect(claimsOf(jwt).sub).toBe(`http://localhost:8787/v1/applications/${application.id}/status/${list}`);
      expect([await isolate.read(list), isolate.builds()]).toEqual([jwt, 1]);
    }
  });

  it.each([
    [
      "fails",
      cacheThat({ match: () => Promise.reject(new Error("no")), put: () => Promise.reject(new Error("no")) }),
      2,
    ],
    ["has something else", cacheThat({ match: async () => new Response("something else") }), 0],
  ])("a list is built when the data centre's cache %s, and each failure is logged", async (_, edgeCache, failures) => {
    const { application, valueIn } = await tenant();
    const isolate = await newIsolate(application, { edgeCache });
    expect(await valueIn(await isolate.read())).toBe(0);
    expect(isolate.builds()).toBe(1);
    expect(log.lines().filter(({ event }) => event === "edge-cache-failed")).toHaveLength(failures);
  });

  it("a list is built after half a second when the data centre's cache never responds", async () => {
    const { application, valueIn } = await tenant();
    const hang = vi.fn(() => new Promise<never>(() => {}));
    const isolate = await newIsolate(application, { edgeCache: cacheThat({ match: hang, put: hang }) });
    const reading = isolate.read();
    await timers.pass(499, () => hang.mock.calls.length === 1);
    expect([await isSettled(reading), isolate.builds()]).toEqual([false, 0]);
    await timers.pass(1);
    await timers.pass(500, () => hang.mock.calls.length === 2);
    expect(await valueIn(await reading)).toBe(0);
    expect(isolate.builds()).toBe(1);
  });
});

describe("building a list reads what has changed, not what there is (contract section 14)", () => {
  /** Badges of list 0 whose change numbers are their ordinals; every hundredth has been suspended. */
  async function fill(application: TestApplication, from: number, to: number): Promise<void> {
    await runSql(
      `WITH RECURSIVE place (n) AS (SELECT CAST(?3 AS INTEGER) UNION ALL SELECT n + 1 FROM place WHERE n < ?4)
       INSERT INTO badge (number, application_id, device, user_id, event_id, ordinal, login_sequence, state, change, status_change,
         expires_at, ended_at)
       SELECT 7000000000 + ?2 + n, ?1, 'd' || n, 'u' || n, 'evt_' || n, n, 1, iif(n % 100, 'active', 'suspended'), n,
         iif(n % 100, NULL, n), iif(n % 3 = 1, 1000, NULL), iif(n % 3 = 1, 1000, NULL)
       FROM place`,
      application.id,
      application.firstNumber * 1_000_000,
      from,
      to,
    );
  }

  /** Badges of which each has expired without that being recorded. */
  const expire = ({ id }: TestApplication, above: number) =>
    runSql("UPDATE badge SET expires_at = 1000, ended_at = NULL WHERE application_id = ?1 AND ordinal > ?2", id, above);

  /** Builds a list in an isolate that has just started. @returns the rows that it read, and how many entries are 2 */
  async function build(application: TestApplication) {
    let rowsRead = 0;
    const around: AroundTrip = async (statements, send) => {
      const result = await send();
      rowsRead += (await billOf(statements, result)).rowsRead;
      return result;
    };
    const isolate = await newIsolate(application, { around, edgeCache: cacheThat({}) });
    const valueAt = await entriesOf(await isolate.read());
    const suspended = Array.from({ length: 131_072 }, (_, idx) => valueAt(idx)).filter((value) => value === 2).length;
    return { rowsRead, suspended };
  }

  it("a list with thousands of changes is read once in the whole service, and then only its latest changes", async () => {
    const application = await createApplication({ statusList: true });
    const other = await createApplication({ statusList: true });
    await fill(application, 1, 60_000);
    await fill(other, 1, 20_000);
    await expire(other, 10_000);
    expect(await build(application)).toMatchObject({ suspended: 600 });
    // What is saved, the last ordinals of live and of ended badges, and a row after each range.
    const UNCHANGED = 8;
    const again = await build(application);
    expect(again.suspended).toBe(600);
    expect(again.rowsRead).toBeLessThanOrEqual(UNCHANGED);
    await fill(application, 60_001, 61_000);
    const changed = await build(application);
    expect(changed.suspended).toBe(610);
    expect(changed.rowsRead).toBeLessThanOrEqual(UNCHANGED + 10);
    await expire(application, 60_950);
    const expired = await build(application);
    // The suspended ones among them have expired too.
    expect(expired.suspended).toBe(610 + 50 - 1);
    expect(expired.rowsRead).toBeLessThanOrEqual(UNCHANGED + 10 + 50);
  });

  it("a list with more changes than one statement reads is built in steps", async () => {
    const application = await createApplication({ statusList: true });
    await fill(application, 1, 25_000);
    const { id } = application;
    await runSql("UPDATE badge SET state = 'suspended', status_change = change WHERE application_id = ?", id);
    expect(await build(application)).toMatchObject({ suspended: 25_000 });
    expect((await build(application)).rowsRead).toBeLessThan(5010);
  });

  it("a list that D1 does not save is sent all the same, and that is logged", async () => {
    const application = await createApplication({ statusList: true });
    // A list is saved after 100 changes.
    await fill(application, 1, 10_000);
    const around: AroundTrip = (statements, send) =>
      isAbout(statements, "INTO status_list") ? Promise.reject(new Error("D1 is overloaded")) : send();
    const jwt = await (await newIsolate(application, { around, edgeCache: cacheThat({}) })).read();
    expect((await inflate(claimsOf(jwt).status_list.lst)).some((byte) => byte !== 0)).toBe(true);
    const own = log.lines().filter((line) => line.application === application.id);
    expect(own).toMatchObject([{ level: "warn", event: "status-list-not-saved", list: 0 }]);
  });

  it("a saved list is never replaced by an older one, or by one of a state that D1 has lost", async () => {
    const application = await createApplication({ statusList: true });
    await fill(application, 1, 200);
    const db = new Database(homeDatabase());
    const of = { applicationId: application.id, list: 0 };
    for (const [through, lst] of [
      [200, "newer"],
      [100, "older"],
      [300, "lost"],
    ] as const) {
      await saveStatusList(db, { ...of, through, lst });
    }
    // Nothing has changed since, so it is sent as it was saved.
    const isolate = await newIsolate(application, { edgeCache: cacheThat({}) });
    expect(claimsOf(await isolate.read()).status_list.lst).toBe("newer");
  });
});
