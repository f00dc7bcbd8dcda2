import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { newApplicationId } from "../../src/shared/identifiers.ts";
import { AllocatorClient } from "../../src/worker/allocator/allocator-client.ts";
import { warnIfHomeFills } from "../../src/worker/home-size.ts";
import { homesOf } from "../../src/worker/homes.ts";
import worker from "../../src/worker/index.ts";
import { recordTick, type Tick } from "../../src/worker/scheduling/detect-restore.ts";
import { sweepHome } from "../../src/worker/scheduling/sweep.ts";
import { wakeForCommands } from "../../src/worker/scheduling/wake-allocators.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { putCommand, resultOf } from "../allocator/support.ts";
import { aroundAllocators } from "../support/allocator.ts";
import { createApplication } from "../support/application.ts";
import { contextOf, testContext } from "../support/context.ts";
import { aroundD1, countedD1 } from "../support/d1.ts";
import { LOST } from "../support/faults.ts";
import { boundHome, homeDatabase, runSql, testHome } from "../support/home.ts";
import { log } from "../support/log.ts";
import { until } from "../support/until.ts";

const linesAbout = (event: string) => log.lines().filter((line) => line.event === event);

describe("a home's scheduler (contract sections 17 and 21)", () => {
  it("an allocator that hangs delays no other application's commands", async () => {
    const applications = await Promise.all(Array.from({ length: 6 }, () => createApplication()));
    const block = { kind: "block", userId: "ada" } as const;
    const commands = await Promise.all(applications.map((application) => putCommand(application, block)));
    const stuck = applications.slice(0, 2).map(({ id }) => String(id));
    const namespace = aroundAllocators((_, send, id) => (stuck.includes(id) ? new Promise(() => {}) : send()));
    const hanging = testContext({ allocator: new AllocatorClient(namespace, boundHome()) });
    void wakeForCommands(hanging.context);
    await until(async () => {
      for (const id of commands.slice(2)) expect(await resultOf(id)).toMatchObject({ kind: "user" });
    });
    for (const id of commands.slice(0, 2)) expect(await resultOf(id)).toBeNull();
    await wakeForCommands(testContext().context);
    for (const id of commands) expect(await resultOf(id)).toMatchObject({ kind: "user" });
  });

  it("one tick has the commands of 401 applications carried out, of 100 at once", async () => {
    const ids = Array.from({ length: 401 }, () => newApplicationId(testHome()));
    await runSql(
      `INSERT INTO script_command (id, recipient, command, created_at)
       SELECT value, value, '{}', unixepoch() * 1000 FROM json_each(?1)`,
      JSON.stringify(ids),
    );
    const called: string[] = [];
    let [running, most] = [0, 0];
    const wake = async (id: string) => {
      called.push(id);
      most = Math.max(most, ++running);
      await scheduler.wait(1);
      running--;
    };
    const namespace = new Proxy(env.ALLOCATOR, { get: () => () => ({ wake }) });
    const counted = countedD1(homeDatabase());
    const allocator = new AllocatorClient(namespace, boundHome());
    await wakeForCommands(testContext({ allocator, db: new Database(counted.d1) }).context);
    await runSql("DELETE FROM script_command");
    expect(called.toSorted()).toEqual(ids.toSorted());
    expect([counted.trips, most]).toEqual([1, 100]);
  });

  it("a sweep is logged with what it did, and not at all if there was nothing to do (docs/operations.md)", async () => {
    const sweepNow = () => sweepHome(testContext().context, { get: () => null, set: () => {} });
    await sweepNow();
    const before = linesAbout("sweep").length;
    await sweepNow();
    expect(linesAbout("sweep")).toHaveLength(before);
    await runSql("INSERT INTO script_command (id, recipient, command, created_at) VALUES ('old', 'home', '{}', 0)");
    await sweepNow();
    const counts = { commandsDeleted: 1, eventsDeleted: 0, eventsEnqueued: 0, valuesUnreadable: 0 };
    expect(linesAbout("sweep").slice(before)).toMatchObject([{ home: testHome(), ...counts, isFinished: true }]);
  });

  it("cron calls the schedulers of all homes concurrently", async () => {
    const called: number[] = [];
    const HOME_SCHEDULER = new Proxy(env.HOME_SCHEDULER, {
      get: () => () => ({
        tick: (home: number) => {
          called.push(home);
          return home === 1 ? new Promise(() => {}) : Promise.resolve();
        },
      }),
    });
    const controller = { scheduledTime: Date.now(), cron: "* * * * *", noRetry() {} };
    void worker.scheduled(controller, { ...env, HOME_SCHEDULER });
    await until(() => expect(called.toSorted()).toEqual(homesOf(env).map(({ number }) => number)));
  });

  it("a home whose D1 fails is logged, with each kind of its work", async () => {
    const down = aroundD1(homeDatabase(), () => Promise.reject(new Error("D1_ERROR: no such table: SQLITE_ERROR")));
    const other = 3 - testHome();
    await sweepHome({ ...contextOf(other), db: new Database(down) }, { get: () => null, set: () => {} });
    const failed = linesAbout("sweep-task-failed");
    expect(new Set(failed.map(({ home }) => home))).toEqual(new Set([other]));
    expect(failed.length).toBeGreaterThan(3);
  });
});

describe("a restore of D1 (contract section 21)", () => {
  const before: Tick = { sequence: 0, tickedAt: 0 };

  it("a restore is noticed when the heartbeat is behind, and assumed when it is ahead or after a gap of over 90 s", async () => {
    const { context } = testContext();
    const first = await recordTick(context, undefined);
    expect(first.isInDoubt).toBe(true);
    const tickedAt = Date.now();
    const standing = { ...context, now: () => tickedAt };
    let { sequence } = first;
    const tick = async (known: Partial<Tick>) => {
      const ticked = await recordTick(standing, { ...before, tickedAt, sequence, ...known });
      ({ sequence } = ticked);
      return ticked;
    };
    expect((await tick({})).isInDoubt).toBe(false);
    expect((await tick({ tickedAt: tickedAt - 90_001 })).isInDoubt).toBe(true);
    expect((await tick({ tickedAt: tickedAt - 90_000 })).isInDoubt).toBe(false);
    // The clock was set back.
    expect((await tick({ tickedAt: tickedAt + 90_001 })).isInDoubt).toBe(true);
    // D1 may have been restored to a later state: a restore was undone.
    expect((await tick({ sequence: sequence - 1 })).isInDoubt).toBe(true);
    expect(linesAbout("restore-noticed")).toEqual([]);
    expect((await tick({ sequence: 2 * sequence })).isInDoubt).toBe(true);
    expect(linesAbout("restore-noticed")).toMatchObject([{ level: "warn", home: testHome() }]);
  });

  it.each([
    ["the response of the next beat was lost", true],
    ["D1 carries out the next beat twice", false],
  ])("a restore by one beat is noticed when %s, which makes up for it", async (_, isLost) => {
    const { context } = testContext();
    const { sequence } = await recordTick(context, undefined);
    let beats = 0;
    const d1 = aroundD1(homeDatabase(), async (_, send) => {
      const response = await send();
      if (++beats > 1) return response;
      if (isLost) throw LOST;
      return send();
    });
    const known = { sequence: sequence + 1, tickedAt: Date.now() };
    const tick = await recordTick({ ...context, db: new Database(d1) }, known);
    expect(tick.isInDoubt).toBe(true);
  });

  it("a restore is noticed although a late beat moves the heartbeat forward again", async () => {
    const { context } = testContext();
    const first = await recordTick(context, undefined);
    let late: (() => Promise<unknown>) | undefined;
    const d1 = aroundD1(homeDatabase(), async (_, send) => {
      if (late !== undefined) return send();
      late = send;
      throw LOST;
    });
    const second = await recordTick({ ...context, db: new Database(d1) }, first);
    expect(second.isInDoubt).toBe(false);
    await runSql("UPDATE heartbeat SET sequence = ?1", first.sequence);
    await late?.();
    expect((await recordTick(context, second)).isInDoubt).toBe(true);
  });
});

/** The home's D1, as if it had so many bytes. */
function d1Of(bytes: number): D1Database {
  return new Proxy(homeDatabase(), {
    get: (target, name) =>
      name === "prepare"
        ? (sql: string) => ({
            run: async () => ({ ...(await target.prepare(sql).run()), meta: { size_after: bytes } }),
          })
        : Reflect.get(target, name),
  });
}

const linesOf = (number: number) => log.lines().filter(({ home }) => home === number);

describe("a home's D1 that fills up (contract section 17)", () => {
  it("a home's D1 with 70 % of the 10 GB is logged", async () => {
    for (const bytes of [1, 6_999_999_999]) await warnIfHomeFills({ number: 7, d1: d1Of(bytes) });
    expect(linesOf(7)).toEqual([]);
    for (const bytes of [7_000_000_000, 9_999_999_999]) await warnIfHomeFills({ number: 7, d1: d1Of(bytes) });
    const line = { level: "warn", event: "home-fills-up", home: 7 };
    expect(linesOf(7)).toMatchObject([
      { ...line, usedPercent: 70 },
      { ...line, usedPercent: 99 },
    ]);
  });

  it("a home's D1 is measured once an hour, by the first tick", async () => {
    const hour = Date.UTC(2031, 0, 1, 5);
    const isMeasured = async (scheduledTime: number) => {
      const fills = () => linesOf(1).filter(({ event }) => event === "home-fills-up").length;
      const before = fills();
      await worker.scheduled({ scheduledTime, cron: "* * * * *", noRetry() {} }, { ...env, DB: d1Of(8_000_000_000) });
      return fills() > before;
    };
    for (const time of [hour, hour + 59_999]) expect(await isMeasured(time)).toBe(true);
    for (const time of [hour - 1, hour + 60_000]) expect(await isMeasured(time)).toBe(false);
  });

  it("a home's D1 that cannot be measured stops nothing else", async () => {
    const d1 = new Proxy(homeDatabase(), {
      get() {
        throw new Error("down");
      },
    });
    await warnIfHomeFills({ number: 7, d1 });
    expect(linesOf(7)).toMatchObject([{ level: "warn", event: "home-not-measured", home: 7 }]);
  });
});
