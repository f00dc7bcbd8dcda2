import { describe, expect, it } from "vitest";
import { reconciliation } from "../../src/shared/schema.ts";
import { AllocatorClient } from "../../src/worker/allocator/client.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { sweep } from "../../src/worker/sweep.ts";
import { claim, invite } from "../invitations/support/calls.ts";
import { ahead, MINUTE, moveClock, SECOND, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { orm } from "../invitations/support/storage.ts";
import { aroundAllocators, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { aroundD1 } from "../support/d1.ts";
import { byEffort } from "../support/effort.ts";
import { failingTrips, isAbout, LOST } from "../support/faults.ts";
import { boundHome, homeDatabase } from "../support/home.ts";
import { requestBadge } from "../support/http.ts";
import { fc, SEED } from "../support/random.ts";
import { badgeRows } from "../support/rows.ts";
import { copyD1, type D1Copy, Follower, restoreD1 } from "./follower.ts";
import { block, getBadge, issueTo, runSweep, setEnd, takeStep, unblock } from "./life-support.ts";

useQuietLog();
useStandingClock();

async function passMinute(): Promise<void> {
  moveClock(MINUTE);
  await runSweep();
}

describe("the feed after D1 was restored to an older state (contract section 13)", () => {
  it.each([
    ["nothing is written afterwards", async () => {}],
    ["a badge changes afterwards", (application: TestApplication, id: string) => takeStep(application, id, "suspend")],
    [
      "a login brings metadata afterwards",
      (application: TestApplication) => requestBadge(application, "phone", { userId: "alice", metadata: { os: "x" } }),
    ],
  ] as const)("earlier cursors have expired after two sweeps when %s", async (_, act) => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
    const early = new Follower(application);
    await early.follow();
    const copy = await copyD1();
    await passMinute();
    await issueTo(application, "lost", "bob");
    const late = new Follower(application);
    await late.follow();
    await restoreD1(copy);
    await act(application, id);
    await passMinute();
    await passMinute();
    for (const follower of [early, late]) {
      await follower.follow();
      expect(follower.restarts).toBe(1);
      await follower.expectExact();
      await passMinute();
      await follower.follow();
      expect(follower.restarts).toBe(1);
    }
  });

  it.each([0, 1, 2, 3])(
    "earlier cursors expire also when the sweep that notices it dies after %i calls",
    async (calls) => {
      const application = await createApplication();
      await issueTo(application, "phone", "alice");
      await passMinute();
      const copy = await copyD1();
      await passMinute();
      const follower = new Follower(application);
      await follower.follow();
      await restoreD1(copy);
      let left = calls;
      const live = <Result>(call: () => Promise<Result>) =>
        left-- > 0 ? call() : Promise.reject(new Error("the isolate is gone"));
      const db = new Database(aroundD1(homeDatabase(), (_, send) => live(send)));
      const allocator = new AllocatorClient(
        aroundAllocators((_, call) => live(call)),
        boundHome(),
      );
      moveClock(MINUTE);
      await sweep([testContext({ db, allocator }).context]);
      await passMinute();
      await follower.follow();
      expect(follower.restarts).toBe(1);
      await follower.expectExact();
    },
  );

  it("two sweeps at once are no restoration: cursors stay", async () => {
    const application = await createApplication();
    await issueTo(application, "phone", "alice");
    await passMinute();
    const follower = new Follower(application);
    await follower.follow();
    const second = Promise.withResolvers<void>();
    const db = new Database(
      aroundD1(homeDatabase(), async (statements, send) => {
        const result = await send();
        if (isAbout(statements, "INSERT INTO clock")) await second.promise;
        return result;
      }),
    );
    const first = sweep([testContext({ db }).context]);
    await runSweep();
    second.resolve();
    await first;
    await passMinute();
    expect(await follower.follow()).toEqual([]);
    expect(follower.restarts).toBe(0);
  });

  it("expire at once when the application's own writes show it", async () => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
    const copy = await copyD1();
    await passMinute();
    await issueTo(application, "lost", "bob");
    const follower = new Follower(application);
    await follower.follow();
    await restoreD1(copy);
    await takeStep(application, id, "suspend");
    await takeStep(application, id, "resume");
    await follower.follow();
    expect(follower.restarts).toBe(1);
    await follower.expectExact();
  });
});

describe("reconcile after D1 was restored (contract section 12)", () => {
  it("repeats the revocations that D1 has forgotten, and nothing else", async () => {
    const application = await createApplication();
    const revoked = await issueTo(application, "phone-1", "alice");
    const suspended = await issueTo(application, "phone-2", "alice");
    const { token, number } = await invite(application);
    await claim(application, "phone-3", "bob", token);
    const copy = await copyD1();
    await passMinute();
    await takeStep(application, revoked, "revoke");
    await takeStep(application, suspended, "suspend");
    await block(application, "bob");
    await restoreD1(copy);
    const states = async () =>
      Promise.all([revoked, suspended, String(number)].map(async (id) => (await getBadge(application, id)).body.state));
    expect(await states()).toEqual(["active", "active", "active"]);
    const row = { applicationId: application.id, restored: "d1", requestedAt: Date.now(), step: "badges", through: 0 };
    await orm()
      .insert(reconciliation)
      .values({ ...row, restored: "d1", step: "badges" });
    await passMinute();
    expect(await states()).toEqual(["revoked", "active", "revoked"]);
  });
});

describe("a revocation whose first response from D1 was lost", () => {
  it("is still recorded, and repeated by reconcile (contract section 12)", async () => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
    const copy = await copyD1();
    await passMinute();
    const once = { name: "once", times: 1, error: LOST, isOvercome: true };
    await aroundObjectD1(application, () => failingTrips("UPDATE badge SET state", once, "after"));
    expect((await takeStep(application, id, "revoke")).status).toBe(200);
    await restoreD1(copy);
    const row = { applicationId: application.id, requestedAt: Date.now(), through: 0 };
    await orm()
      .insert(reconciliation)
      .values({ ...row, restored: "d1", step: "badges" });
    await passMinute();
    expect((await getBadge(application, id)).body.state).toBe("revoked");
  });
});

type Act = (world: World) => Promise<unknown>;

/** One application in a random history, and those who follow its feed. */
interface World {
  application: TestApplication;
  followers: Follower[];
  copy: D1Copy | null;
}

const place = fc.nat({ max: 3 });

/** A badge that was issued, if there is one. */
async function someBadge({ application }: World, choice: number): Promise<string> {
  const issued = (await badgeRows(application)).filter(({ position }) => position !== null);
  return String(issued[choice % Math.max(issued.length, 1)]?.number ?? 1);
}

const ACTS = fc.oneof(
  fc.record({ device: place, user: place, os: place }).map(
    ({ device, user, os }): Act =>
      ({ application }) =>
        requestBadge(application, `phone-${device}`, { userId: `user-${user}`, metadata: { os: `os ${os}` } }),
  ),
  fc.record({ device: place, user: place }).map(
    ({ device, user }): Act =>
      async ({ application }) => {
        const { token } = await invite(application, ahead(30 * SECOND));
        return claim(application, `phone-${device}`, `user-${user}`, token);
      },
  ),
  fc.record({ choice: fc.nat({ max: 15 }), step: fc.constantFrom("suspend", "resume", "revoke") }).map(
    ({ choice, step }): Act =>
      async (world) =>
        takeStep(world.application, await someBadge(world, choice), step),
  ),
  fc.record({ choice: fc.nat({ max: 15 }), end: fc.constantFrom(null, -SECOND, SECOND, MINUTE) }).map(
    ({ choice, end }): Act =>
      async (world) =>
        setEnd(world.application, await someBadge(world, choice), end === null ? null : ahead(end)),
  ),
  place.map(
    (user): Act =>
      ({ application }) =>
        block(application, `user-${user}`),
  ),
  place.map(
    (user): Act =>
      ({ application }) =>
        unblock(application, `user-${user}`),
  ),
  fc.constant<Act>(passMinute),
  fc.constant<Act>(async () => moveClock(SECOND)),
  place.map(
    (who): Act =>
      async ({ followers }) =>
        followers[who]?.follow(),
  ),
  fc.constant<Act>(async (world) => {
    world.copy = await copyD1();
    await passMinute();
  }),
  fc.constant<Act>(async ({ copy }) => copy && restoreD1(copy)),
);

describe("any history of badges and restorations (contract section 13)", () => {
  it("leaves a follower of the feed with an exact copy", async () => {
    const history = fc.array(ACTS, { minLength: 5, maxLength: 25, size: "max" });
    const property = fc.asyncProperty(history, async (acts) => {
      const application = await createApplication({ size: 1000 });
      const followers = [1, 2, 100, 100].map((perPage) => new Follower(application, perPage));
      const world: World = { application, followers, copy: null };
      for (const act of acts) await act(world);
      await passMinute();
      await passMinute();
      for (const follower of followers) {
        await follower.follow();
        await follower.expectExact();
      }
    });
    // Four histories of this seed are enough to notice cursors that never expire.
    await fc.assert(property, { seed: byEffort(4, SEED), numRuns: byEffort(4, 300) });
  }, 400_000);
});
