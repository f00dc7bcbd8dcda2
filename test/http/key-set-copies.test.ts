import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { makeSigningKey } from "../../src/shared/credentials.ts";
import { ApplicationCache } from "../../src/worker/applications/application-cache.ts";
import { readKeySet } from "../../src/worker/applications/key-set.ts";
import { StatusListCache } from "../../src/worker/badges/status-lists/cache.ts";
import { readStatusList } from "../../src/worker/badges/status-lists/read.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { getList } from "../badges/status-support.ts";
import { newAddress } from "../support/address.ts";
import { createApplication, type TestApplication, testSealer } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { aroundD1 } from "../support/d1.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { call } from "../support/http.ts";
import { isSettled, StandingTimers } from "../support/timers.ts";

const ORIGIN = "https://badges.example";

/** The half second that a cache has passes when a test says so. */
let timers: StandingTimers;

beforeEach(() => {
  for (const level of ["log", "warn"] as const) vi.spyOn(console, level).mockImplementation(() => {});
  timers = new StandingTimers();
});

afterEach(() => {
  vi.restoreAllMocks();
  timers.stop();
});

/** Of the clock: what the service waits for has all the time it needs. */
const passSeconds = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1000);

const keySet = z.object({ keys: z.array(z.object({ kid: z.string() })) });

interface IsolateOptions {
  edgeCache?: Cache;
  afterTrip?: () => void;
}

/** An isolate that has just started, in this data centre unless it is given another cache. `afterTrip`: as D1 responds */
function newIsolate({ edgeCache = caches.default, afterTrip = () => {} }: IsolateOptions = {}) {
  let trips = 0;
  const db = new Database(
    aroundD1(homeDatabase(), async (_, send) => {
      trips++;
      const result = await send();
      afterTrip();
      return result;
    }),
  );
  const fresh = { applicationCache: new ApplicationCache(), statusListCache: new StatusListCache() };
  const { context, deferred } = testContext({ db, edgeCache, ...fresh });
  return {
    context,
    trips: () => trips,
    /** @returns the key IDs, once the set is in the cache too */
    async read({ id }: { id: string }, origin = ORIGIN) {
      const json = await readKeySet(context, origin, id, newAddress());
      await Promise.all(deferred);
      return keySet.parse(JSON.parse(json)).keys.map(({ kid }) => kid);
    },
  };
}

async function addKey({ id }: TestApplication): Promise<string> {
  const { kid, publicKey, sealed, sealingVersion } = await makeSigningKey(await testSealer(), id);
  await runSql(
    "INSERT INTO signing_key (application_id, kid, public_key, sealed, sealing_version, created_at) VALUES (?, ?, ?, ?, ?, ?)",
    id,
    kid,
    publicKey,
    sealed,
    sealingVersion,
    Date.now(),
  );
  return kid;
}

describe("a key set comes from the data centre's cache (contract section 16)", () => {
  it("a key set comes from the data centre's cache without asking D1, also for an isolate that has just started", async () => {
    const application = await createApplication();
    const kids = await newIsolate().read(application);
    passSeconds(0.9);
    const other = newIsolate();
    expect(await other.read(application)).toEqual(kids);
    expect(other.trips()).toBe(0);
  });

  it("an isolate that has loaded the application asks neither D1 nor the cache for most of a second", async () => {
    const application = await createApplication();
    const isolate = newIsolate();
    const kids = await isolate.read(application);
    const asked = vi.spyOn(caches.default, "match");
    passSeconds(0.9);
    expect(await isolate.read(application)).toEqual(kids);
    expect([isolate.trips(), asked.mock.calls]).toEqual([1, []]);
  });

  it("a key set has a new key a second after it was published, also where the application is cached (contract section 10)", async () => {
    const application = await createApplication();
    const reader = newIsolate();
    await reader.read(application);
    const kid = await addKey(application);
    passSeconds(1);
    for (const isolate of [newIsolate(), reader]) expect(await isolate.read(application)).toContain(kid);
  });

  it("a key set is as old as its read: one that D1 took its time for is made again sooner", async () => {
    const application = await createApplication();
    await newIsolate({ afterTrip: () => passSeconds(0.6) }).read(application);
    passSeconds(0.5);
    const other = newIsolate();
    await other.read(application);
    expect(other.trips()).toBe(1);
  });

  it("a new key set is made when the cache keeps one for longer than it was told to", async () => {
    const kept = new Map<unknown, Response>();
    const edgeCache: Cache = {
      match: async (url) => kept.get(url)?.clone(),
      put: async (url, response) => void kept.set(url, response),
      delete: async () => false,
    };
    const application = await createApplication();
    await newIsolate({ edgeCache }).read(application);
    expect(kept.size).toBe(1);
    passSeconds(1);
    const other = newIsolate({ edgeCache });
    await other.read(application);
    expect(other.trips()).toBe(1);
  });

  it("a key set comes from D1 when the cache fails", async () => {
    const application = await createApplication();
    const fail = () => Promise.reject(new Error("no"));
    const isolate = newIsolate({ edgeCache: { match: fail, put: fail, delete: async () => false } });
    expect(await isolate.read(application)).toHaveLength(1);
  });

  it("a key set comes from D1 after half a second when the cache never responds", async () => {
    const application = await createApplication();
    const hang = vi.fn(() => new Promise<never>(() => {}));
    const isolate = newIsolate({ edgeCache: { match: hang, put: hang, delete: async () => false } });
    const reading = isolate.read(application);
    await timers.pass(499, () => hang.mock.calls.length === 1);
    expect([await isSettled(reading), isolate.trips()]).toEqual([false, 0]);
    await timers.pass(1);
    await timers.pass(500, () => hang.mock.calls.length === 2);
    expect(await reading).toHaveLength(1);
  });

  it("each application and each origin has a key set of its own in the cache", async () => {
    const [one, other] = [await createApplication(), await createApplication()];
    const kids = await newIsolate().read(one);
    expect(await newIsolate().read(other)).not.toEqual(kids);
    const elsewhere = newIsolate();
    await elsewhere.read(one, "https://elsewhere.example");
    expect(elsewhere.trips()).toBe(1);
  });

  it("an unknown application has no key set, and guessing fills no cache", async () => {
    const put = vi.spyOn(caches.default, "put");
    const { status, body } = await call("GET", "/v1/applications/app_0123456789abcdefghjk/jwks.json");
    expect([status, body]).toEqual([404, { error: "UNKNOWN_APPLICATION" }]);
    expect(put).not.toHaveBeenCalled();
  });
});

describe("a status list comes from the data centre's cache (contract section 16)", () => {
  it("a status list comes from the data centre's cache without asking D1 which application that is", async () => {
    const application = await createApplication({ statusList: true });
    const { text } = await getList(application);
    const { context, trips } = newIsolate();
    expect(await readStatusList(context, application.id, 0, newAddress())).toBe(text);
    // From then on from its own memory.
    vi.spyOn(caches.default, "match").mockRejectedValue(new Error("no"));
    expect(await readStatusList(context, application.id, 0, newAddress())).toBe(text);
    expect(trips()).toBe(0);
  });

  it("a status list from the cache is no younger than it was: after 20 seconds it is built again", async () => {
    const application = await createApplication({ statusList: true });
    await getList(application);
    passSeconds(20);
    const { context, trips } = newIsolate();
    await readStatusList(context, application.id, 0, newAddress());
    expect(trips()).toBeGreaterThan(0);
  });
});
