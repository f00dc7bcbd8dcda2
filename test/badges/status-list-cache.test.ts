import { describe, expect, it } from "vitest";
import { StatusListCache } from "../../src/worker/badges/status-lists/cache.ts";
import { StatusIndexes } from "../../src/worker/badges/status-lists/list-index.ts";
import { readStatusList } from "../../src/worker/badges/status-lists/read.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { saveStatusList } from "../../src/worker/storage/status-lists.ts";
import { moveClock, SECOND, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { newAddress } from "../support/address.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { billOf } from "../support/bill.ts";
import { testContext } from "../support/context.ts";
import { type AroundTrip, aroundD1 } from "../support/d1.ts";
import { isAbout } from "../support/faults.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { takeStep, withBadge } from "./life-support.ts";
import { claimsOf, entriesOf, indexOn, inflate } from "./status-support.ts";

useQuietLog();
useStandingClock();

const passSeconds = (seconds: number) => moveClock(seconds * SECOND);

/** An isolate that has just started, in this data centre unless it is given another cache; its queries of lists are counted. */
async function newIsolate(
  application: TestApplication,
  { edgeCache = caches.default, around }: { edgeCache?: Cache; around?: AroundTrip } = {},
) {
  let built = 0;
  const db = new Database(
    aroundD1(homeDatabase(), (statements, send) => {
      if (!isAbout(statements, "FROM status_list")) return send();
      built++;
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

/** A cache of another data centre, which keeps nothing. */
const EMPTY_CACHE: Cache = { match: async () => undefined, put: async () => {}, delete: async () => false };

/** An application with one badge, and what a list says of it. */
async function tenant() {
  const { application, number } = await withBadge({ statusList: true });
  const { idx } = await indexOn(application, "phone");
  return { application, number, valueIn: async (jwt: string) => (await entriesOf(jwt))(idx) };
}

describe("a list is at most 30 seconds old when it is sent (contract section 14)", () => {
  it("the age of a list counts from when it was built, in the isolate and in the data centre's cache, and none from the future is sent", async () => {
    const { application, number, valueIn } = await tenant();
    const [builder, taker] = [await newIsolate(application), await newIsolate(application)];
    const first = await builder.read();
    await takeStep(application, number, "revoke");
    passSeconds(15);
    for (const isolate of [builder, taker]) expect(await isolate.read()).toBe(first);
    expect([builder.builds(), taker.builds()]).toEqual([1, 0]);
    passSeconds(15);
    expect(await valueIn(await taker.read())).toBe(1);
    expect(await valueIn(await builder.read())).toBe(1);
    expect([builder.builds(), taker.builds()]).toEqual([1, 1]);
    passSeconds(-3600);
    await taker.read();
    expect(taker.builds()).toBe(2);
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

describe("copies of lists", () => {
  it("a door's probe of the next list does not read the cache while that list cannot exist", async () => {
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
    await runSql("UPDATE badge SET ordinal = 131071 - 32767 WHERE application_id = ?", application.id);
    passSeconds(1);
    expect(await poll()).toBe(2);
    passSeconds(1);
    expect(await poll()).toBe(3);
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
  const expire = (application: TestApplication, above: number) =>
    runSql(
      "UPDATE badge SET expires_at = 1000, ended_at = NULL WHERE application_id = ?1 AND ordinal > ?2",
      application.id,
      above,
    );

  /** An isolate that counts rows, and the bytes of the list that it builds. */
  async function meter(application: TestApplication) {
    let rowsRead = 0;
    const around: AroundTrip = async (statements, send) => {
      const result = await send();
      rowsRead += (await billOf(statements, result)).rowsRead;
      return result;
    };
    return async () => {
      rowsRead = 0;
      const isolate = await newIsolate(application, { around, edgeCache: EMPTY_CACHE });
      const bytes = await inflate(claimsOf(await isolate.read()).status_list.lst);
      const suspendedIn = (byte: number) => [0, 2, 4, 6].filter((at) => (byte >> at) & 2).length;
      return { rowsRead, suspended: bytes.reduce((sum, byte) => sum + suspendedIn(byte), 0) };
    };
  }

  it("a list with thousands of changes is read once in the whole service, and then only its latest changes", async () => {
    const application = await createApplication({ statusList: true });
    const other = await createApplication({ statusList: true });
    await fill(application, 1, 20_000);
    await fill(other, 1, 2000);
    await expire(other, 1000);
    const build = await meter(application);
    expect(await build()).toMatchObject({ suspended: 200 });
    // What is saved, the last ordinals of live and of ended badges, and a row after each range.
    const UNCHANGED = 8;
    const again = await build();
    expect(again.suspended).toBe(200);
    expect(again.rowsRead).toBeLessThanOrEqual(UNCHANGED);
    await fill(application, 20_001, 21_000);
    const changed = await build();
    expect(changed.suspended).toBe(210);
    expect(changed.rowsRead).toBeLessThanOrEqual(UNCHANGED + 10);
    await expire(application, 20_950);
    const expired = await build();
    // The suspended ones among them have expired too.
    expect(expired.suspended).toBe(210 + 50 - 1);
    expect(expired.rowsRead).toBeLessThanOrEqual(UNCHANGED + 10 + 50);
  });

  it("a list with more changes than one statement reads is built in steps", async () => {
    const application = await createApplication({ statusList: true });
    await fill(application, 1, 12_000);
    const all = "UPDATE badge SET state = 'suspended', status_change = change WHERE application_id = ?";
    await runSql(all, application.id);
    const build = await meter(application);
    expect(await build()).toMatchObject({ suspended: 12_000 });
    expect((await build()).rowsRead).toBeLessThan(100);
  });

  it("a saved list is never replaced by an older one, or by one of a state that D1 has lost", async () => {
    const application = await createApplication({ statusList: true });
    await fill(application, 1, 200);
    const db = new Database(homeDatabase());
    const of = { applicationId: application.id, list: 0 };
    const saved = () =>
      homeDatabase().prepare("SELECT lst FROM status_list WHERE application_id = ?").bind(application.id).first("lst");
    await saveStatusList(db, { ...of, through: 200, lst: "newer" });
    await saveStatusList(db, { ...of, through: 100, lst: "older" });
    await saveStatusList(db, { ...of, through: 300, lst: "lost" });
    expect(await saved()).toBe("newer");
  });
});
