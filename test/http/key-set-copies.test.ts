import { drizzle } from "drizzle-orm/d1";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { makeSigningKey } from "../../src/shared/credentials.ts";
import { signingKey } from "../../src/shared/schema.ts";
import { ApplicationCache } from "../../src/worker/applications/application-cache.ts";
import { readKeySet } from "../../src/worker/applications/key-set.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { newAddress } from "../support/address.ts";
import { createApplication, type TestApplication, testSealer } from "../support/application.ts";
import { moveClock, SECOND, useStandingClock } from "../support/clock.ts";
import { testContext } from "../support/context.ts";
import { aroundD1 } from "../support/d1.ts";
import { homeDatabase } from "../support/home.ts";
import { call } from "../support/http.ts";

const ORIGIN = "https://badges.example";

// What the service waits for has all the time it needs.
useStandingClock();

const keySet = z.object({ keys: z.array(z.object({ kid: z.string() })) });

/** An isolate of this data centre that has just started. `afterTrip`: as D1 responds */
function newIsolate(afterTrip = () => {}) {
  let trips = 0;
  const db = new Database(
    aroundD1(homeDatabase(), async (_, send) => {
      trips++;
      const result = await send();
      afterTrip();
      return result;
    }),
  );
  const { context, deferred } = testContext({
    db,
    edgeCache: caches.default,
    applicationCache: new ApplicationCache(),
  });
  return {
    trips: () => trips,
    /** @returns the key IDs, once the set is in the cache too */
    async read({ id }: { id: string }, origin = ORIGIN) {
      const json = await readKeySet(context, origin, id, newAddress());
      await Promise.all(deferred);
      return keySet.parse(JSON.parse(json)).keys.map(({ kid }) => kid);
    },
  };
}

async function addKey({ id: applicationId }: TestApplication): Promise<string> {
  const key = await makeSigningKey(await testSealer(), applicationId);
  await drizzle(homeDatabase())
    .insert(signingKey)
    .values({ ...key, applicationId, createdAt: Date.now() });
  return key.kid;
}

describe("a key set comes from the data centre's cache (contract section 16)", () => {
  it("for most of a second, an isolate that has loaded the application asks neither D1 nor the cache, and one that has just started the cache alone; then a new key is in the key set (contract section 10)", async () => {
    const application = await createApplication();
    const reader = newIsolate();
    const kids = await reader.read(application);
    const kid = await addKey(application);
    const asked = vi.spyOn(caches.default, "match");
    moveClock(0.9 * SECOND);
    expect(await reader.read(application)).toEqual(kids);
    expect([reader.trips(), asked.mock.calls]).toEqual([1, []]);
    const other = newIsolate();
    expect([await other.read(application), other.trips()]).toEqual([kids, 0]);
    moveClock(0.1 * SECOND);
    for (const isolate of [newIsolate(), reader]) expect(await isolate.read(application)).toContain(kid);
  });

  it("a key set is as old as its read: one that D1 took its time for is made again sooner", async () => {
    const application = await createApplication();
    await newIsolate(() => moveClock(0.6 * SECOND)).read(application);
    moveClock(0.5 * SECOND);
    const other = newIsolate();
    await other.read(application);
    expect(other.trips()).toBe(1);
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
