import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { getTableName } from "drizzle-orm";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { newApplicationId } from "../../src/shared/identifiers.ts";
import { applicationHead } from "../../src/shared/schema.ts";
import { HomeScheduler } from "../../src/worker/scheduling/home-scheduler.ts";
import { takeStep } from "../badges/life-support.ts";
import { outcome, phoneWithBadge } from "../badges/near-support.ts";
import { allocatorOf, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication } from "../support/application.ts";
import { MINUTE, moveClock, useStandingClock } from "../support/clock.ts";
import { LOST } from "../support/faults.ts";
import { homeDatabase, runSql, testHome } from "../support/home.ts";
import { restore, takeSnapshot } from "../support/restoration.ts";
import { StandingTimers } from "../support/timers.ts";

useStandingClock();

/** In real time, whatever the clock says. */
const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

type Wake = (id: string, isInDoubt: boolean) => Promise<void>;

/** The home's scheduler, whose allocators are woken in this way. */
async function withScheduler(wake: Wake, work: (scheduler: HomeScheduler, state: DurableObjectState) => Promise<void>) {
  const ALLOCATOR = new Proxy(env.ALLOCATOR, { get: () => () => ({ wake }) });
  await runInDurableObject(env.HOME_SCHEDULER.getByName(String(testHome())), async (_, state) => {
    await work(new HomeScheduler(state, { ...env, ALLOCATOR }), state);
  });
}

const restoreHeartbeat = () => runSql("UPDATE heartbeat SET sequence = 0");

/** Adds rows of applications, without credentials. @returns their IDs, in their order */
async function addApplications(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newApplicationId(testHome())).toSorted();
  await runSql(
    `INSERT INTO application (id, name, first_number, last_number, sealed_root_key, sealing_version, created_at)
     SELECT value, 'Test', 8000000000000 + key, 8000000000000 + key, '', 1, 0 FROM json_each(?1)`,
    JSON.stringify(ids),
  );
  return ids;
}

describe("allocators that are to compare themselves after a restore of D1 (contract section 21)", () => {
  it("an allocator whose recovery takes long keeps no other from being told", async () => {
    const [slow, ...others] = await addApplications(401);
    onTestFinished(async () => void (await runSql("DELETE FROM application WHERE first_number >= 8000000000000")));
    const told = new Set<string>();
    const wake: Wake = (id) => {
      told.add(id);
      return id === slow ? new Promise(() => {}) : Promise.resolve();
    };
    const timers = new StandingTimers();
    onTestFinished(() => timers.stop());
    await withScheduler(wake, async (scheduler) => {
      await timers.pass(2 * 60 * MINUTE);
      const ticked = scheduler.tick(testHome());
      await timers.pass(10_000, () => told.size >= 400 && timers.pending === 1);
      await ticked;
    });
    expect(others.filter((id) => !told.has(id))).toEqual([]);
  });

  it("a comparison that other ticks overlap does not set the scheduler's heartbeat back", async () => {
    await createApplication();
    const waiting: (() => void)[] = [];
    let told = 0;
    const wake: Wake = (_, isInDoubt) => {
      if (!isInDoubt) return Promise.resolve();
      told++;
      return new Promise((resolve) => waiting.push(resolve));
    };
    const finish = () => {
      for (const end of waiting.splice(0)) end();
    };
    await withScheduler(wake, async (scheduler) => {
      const finished = async (...ticks: Promise<void>[]) => {
        const timer = setInterval(finish, 20);
        await Promise.all(ticks).finally(() => clearInterval(timer));
      };
      await finished(scheduler.tick(testHome()));
      await restoreHeartbeat();
      moveClock(MINUTE);
      const first = scheduler.tick(testHome());
      await vi.waitUntil(() => waiting.length > 0);
      moveClock(MINUTE);
      // Cron does not wait for the first.
      await finished(first, scheduler.tick(testHome()));
      told = 0;
      moveClock(MINUTE);
      await finished(scheduler.tick(testHome()));
      expect(told).toBe(0);
    });
  });

  it("a second restore is told to every allocator, also one that an earlier tick has just told of the first", async () => {
    const [quick, slow] = [(await createApplication()).id, (await createApplication()).id];
    let restores = 0;
    const told: string[] = [];
    const held: (() => void)[] = [];
    const wake: Wake = (id, isInDoubt) => {
      if (!isInDoubt) return Promise.resolve();
      told.push(`${id} of ${restores}`);
      return id === slow && restores === 1 ? new Promise((resolve) => held.push(resolve)) : Promise.resolve();
    };
    await withScheduler(wake, async (scheduler, { storage }) => {
      await scheduler.tick(testHome());
      storage.sql.exec("INSERT INTO to_compare VALUES (?, 0)", slow);
      await restoreHeartbeat();
      restores = 1;
      moveClock(MINUTE);
      const first = scheduler.tick(testHome());
      await vi.waitUntil(() => held.length > 0);
      await restoreHeartbeat();
      moveClock(MINUTE);
      const second = scheduler.tick(testHome());
      await wait(50);
      restores = 2;
      for (const end of held) end();
      await Promise.all([first, second]);
    });
    expect(told).toEqual(expect.arrayContaining([`${quick} of 2`, `${slow} of 2`]));
  });

  it("of two ticks at once that follow a restore by one beat, neither hides the restore from the other", async () => {
    const [slow, other] = [(await createApplication()).id, (await createApplication()).id];
    let isRestored = false;
    const told: string[] = [];
    const wake: Wake = async (id, isInDoubt) => {
      if (!isInDoubt || !isRestored) return;
      if (id === slow) await wait(100);
      told.push(id);
    };
    await withScheduler(wake, async (scheduler, { storage }) => {
      await scheduler.tick(testHome());
      await runSql("UPDATE heartbeat SET sequence = sequence - 1");
      storage.sql.exec("INSERT INTO to_compare VALUES (?, 0)", slow);
      moveClock(MINUTE);
      isRestored = true;
      await Promise.all([scheduler.tick(testHome()), scheduler.tick(testHome())]);
    });
    expect(told).toContain(other);
  });

  it("copies near callers are trusted again when an allocator could not be told of a restore for ten minutes", async () => {
    await createApplication();
    let isAway = false;
    const wake: Wake = async () => {
      if (isAway) throw LOST;
    };
    const stampedAt = () => homeDatabase().prepare("SELECT ticked_at FROM heartbeat WHERE id = 1").first("ticked_at");
    await withScheduler(wake, async (scheduler) => {
      await scheduler.tick(testHome());
      const before = await stampedAt();
      const isTrusted: boolean[] = [];
      isAway = true;
      for (let minute = 0; minute <= 10; minute++) {
        moveClock(MINUTE);
        // A second restore does not begin the ten minutes again.
        if (minute === 0 || minute === 5) await restoreHeartbeat();
        await scheduler.tick(testHome());
        isTrusted.push((await stampedAt()) !== before);
      }
      expect(isTrusted).toEqual([...Array.from({ length: 10 }, () => false), true]);
    });
  });

  it.each([
    ["be told of a restore", true],
    ["compare itself with a restored D1", false],
  ])(
    "a copy near the caller is not trusted while an allocator could not %s; a later tick tells it, and a revoked badge stays revoked",
    { timeout: 120_000 },
    async (_, isUnreached) => {
      const { application, d1, phone, badgeId } = await phoneWithBadge();
      const { bookmark } = phone;
      let isAway = false;
      const wake: Wake = async (id, isInDoubt) => {
        if (id !== application.id) return;
        if (isAway && isUnreached) throw LOST;
        await allocatorOf(application).wake(application.id, isInDoubt);
      };
      await aroundObjectD1(application, () => async ([{ sql } = { sql: "" }, ...others], send) => {
        if (isAway && !isUnreached && others.length === 0 && sql.includes(getTableName(applicationHead))) throw LOST;
        return send();
      });
      await withScheduler(wake, async (scheduler) => {
        await scheduler.tick(testHome());
        const snapshot = await takeSnapshot(application);
        await takeStep(application, badgeId, "revoke");
        moveClock(30 * MINUTE);
        await runSql("UPDATE heartbeat SET sequence = 0, ticked_at = ticked_at - 60000");
        await restore(application, snapshot);
        isAway = true;
        await scheduler.tick(testHome());
        await d1.catchUp();
        moveClock(MINUTE);
        isAway = false;
        await scheduler.tick(testHome());
      });
      const outcomes = [];
      for (const near of [null, bookmark]) {
        phone.bookmark = near;
        outcomes.push(outcome(await phone.sign()));
      }
      expect(outcomes).toEqual(["403 REVOKED_BADGE", "403 REVOKED_BADGE"]);
    },
  );
});
