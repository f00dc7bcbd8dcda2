import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { newApplicationId } from "../../src/shared/identifiers.ts";
import type { AllocatorCommand } from "../../src/shared/script-commands.ts";
import { AllocatorClient } from "../../src/worker/allocator/allocator-client.ts";
import type { Context } from "../../src/worker/context.ts";
import { homesOf } from "../../src/worker/homes.ts";
import worker from "../../src/worker/index.ts";
import { recordTick, type Tick } from "../../src/worker/scheduling/restores.ts";
import { sweepHome } from "../../src/worker/scheduling/sweep.ts";
import { compareChunk, wakeForCommands } from "../../src/worker/scheduling/wake-allocators.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { putCommand, resultOf } from "../allocator/support.ts";
import { claim, invite } from "../invitations/support/calls.ts";
import { ahead, DAY } from "../invitations/support/clock.ts";
import { aroundAllocators } from "../support/allocator.ts";
import { createApplication } from "../support/application.ts";
import { contextOf, testContext } from "../support/context.ts";
import { aroundD1 } from "../support/d1.ts";
import { LOST } from "../support/faults.ts";
import { boundHome, homeDatabase, runSql, testHome } from "../support/home.ts";
import { callServer } from "../support/http.ts";
import { linesOf } from "../support/log-lines.ts";
import { until } from "../support/until.ts";

const lines = { info: vi.fn(), warn: vi.fn(), error: vi.fn() };

beforeEach(() => {
  lines.info = vi.spyOn(console, "log").mockImplementation(() => {});
  lines.warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  lines.error = vi.spyOn(console, "error").mockImplementation(() => {});
  for (const line of Object.values(lines)) line.mockClear();
});

const BLOCK: AllocatorCommand = { kind: "block", userId: "ada" };

/** A context in which calls of some allocators never come back; those of the others are noted. */
function hanging(applications: readonly string[]): { context: Context; called: string[] } {
  const called: string[] = [];
  const namespace = aroundAllocators((_, send, id) => {
    if (applications.includes(id)) return new Promise(() => {});
    called.push(id);
    return send();
  });
  return { context: testContext({ allocator: new AllocatorClient(namespace, boundHome()) }).context, called };
}

const homeScheduler = (home = testHome()) => env.HOME_SCHEDULER.getByName(String(home));

describe("a home's scheduler (contract sections 17 and 21)", () => {
  it("an allocator that hangs delays no other application's commands", async () => {
    const applications = await Promise.all(Array.from({ length: 6 }, () => createApplication()));
    const commands = await Promise.all(applications.map((application) => putCommand(application, BLOCK)));
    const stuck = applications.slice(0, 2).map(({ id }) => id);
    void wakeForCommands(hanging(stuck).context);
    await until(async () => {
      for (const id of commands.slice(2)) expect(await resultOf(id)).toMatchObject({ kind: "user" });
    });
    for (const id of commands.slice(0, 2)) expect(await resultOf(id)).toBeNull();
    await wakeForCommands(testContext().context);
    for (const id of commands) expect(await resultOf(id)).toMatchObject({ kind: "user" });
  });

  it("one tick has the commands of more applications carried out than one query finds, of 100 at once", async () => {
    const ids = Array.from({ length: 401 }, () => newApplicationId(testHome()));
    await runSql(
      `INSERT INTO script_command (id, recipient, command, created_at)
       SELECT value, value, '{}', unixepoch() * 1000 FROM json_each(?1)`,
      JSON.stringify(ids),
    );
    const called: string[] = [];
    let [queries, running, most] = [0, 0, 0];
    const wake = async (id: string) => {
      called.push(id);
      most = Math.max(most, ++running);
      await scheduler.wait(1);
      running--;
    };
    const namespace = new Proxy(env.ALLOCATOR, { get: () => () => ({ wake }) });
    const d1 = aroundD1(homeDatabase(), (_, send) => {
      queries++;
      return send();
    });
    const allocator = new AllocatorClient(namespace, boundHome());
    await wakeForCommands(testContext({ allocator, db: new Database(d1) }).context);
    await runSql("DELETE FROM script_command");
    expect(called.toSorted()).toEqual(ids.toSorted());
    expect([queries, most]).toEqual([2, 100]);
  });

  it("a sweep is logged with what it did, and not at all if there was nothing to do (docs/operations.md)", async () => {
    const sweepNow = () => sweepHome(testContext().context, { get: () => null, set: () => {} });
    const logged = () => linesOf(lines.info).filter(({ event }) => event === "sweep");
    await sweepNow();
    lines.info.mockClear();
    await sweepNow();
    expect(logged()).toEqual([]);
    await runSql("INSERT INTO script_command (id, recipient, command, created_at) VALUES ('old', 'home', '{}', 0)");
    await sweepNow();
    const counts = { commandsDeleted: 1, eventsDeleted: 0, eventsEnqueued: 0, valuesUnreadable: 0 };
    expect(logged()).toMatchObject([{ home: testHome(), ...counts, isFinished: true }]);
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
    const failed = linesOf(lines.error).filter(({ event }) => event === "sweep-task-failed");
    expect(new Set(failed.map(({ home }) => home))).toEqual(new Set([other]));
    expect(failed.length).toBeGreaterThan(3);
  });

  it("each tick has the script's commands carried out, also one whose wake-up was lost", async () => {
    const application = await createApplication();
    const { token, number } = await invite(application, ahead(DAY));
    expect((await claim(application, "phone", "ada", token)).status).toBe(201);
    const command = await putCommand(application, { kind: "suspend", number });
    await homeScheduler().tick(testHome());
    const badge = await callServer(application, "GET", `/v1/badges/${number}`);
    expect(badge.body).toMatchObject({ state: "suspended" });
    expect(await resultOf(command)).toMatchObject({ kind: "badge" });
  });
});

describe("a restore of D1 (contract section 21)", () => {
  const before: Tick = { sequence: 0, tickedAt: 0, compareAfter: null };

  it("a restore is noticed when the heartbeat is behind, and assumed when it is ahead or after a gap of over 90 s", async () => {
    const { context } = testContext();
    const first = await recordTick(context, undefined);
    expect(first.compareAfter).toBe("");
    const tickedAt = Date.now();
    const standing = { ...context, now: () => tickedAt };
    let { sequence } = first;
    const tick = async (known: Partial<Tick>) => {
      const ticked = await recordTick(standing, { ...before, tickedAt, sequence, ...known });
      ({ sequence } = ticked);
      return ticked;
    };
    expect((await tick({})).compareAfter).toBeNull();
    expect((await tick({ compareAfter: "app_1" })).compareAfter).toBe("app_1");
    expect((await tick({ tickedAt: tickedAt - 90_001 })).compareAfter).toBe("");
    expect((await tick({ tickedAt: tickedAt - 90_000 })).compareAfter).toBeNull();
    // The clock was set back.
    expect((await tick({ tickedAt: tickedAt + 90_001 })).compareAfter).toBe("");
    // D1 may have been restored to a later state: a restore was undone.
    expect((await tick({ sequence: sequence - 1 })).compareAfter).toBe("");
    expect(linesOf(lines.warn)).toEqual([]);
    expect((await tick({ sequence: 2 * sequence })).compareAfter).toBe("");
    expect(linesOf(lines.warn)).toMatchObject([{ event: "restore-noticed", home: testHome() }]);
  });

  it("a restore by one beat is assumed when the response of the next beat was lost, which makes up for it", async () => {
    const { context } = testContext();
    const { sequence } = await recordTick(context, undefined);
    let losses = 1;
    const d1 = aroundD1(homeDatabase(), async (_, send) => {
      const response = await send();
      if (losses-- > 0) throw LOST;
      return response;
    });
    const known = { sequence: sequence + 1, tickedAt: Date.now(), compareAfter: null };
    const tick = await recordTick({ ...context, db: new Database(d1) }, known);
    expect(tick.compareAfter).toBe("");
  });

  it("a restore by one beat is noticed when D1 carries out the next beat twice, which makes up for it", async () => {
    const { context } = testContext();
    const { sequence } = await recordTick(context, undefined);
    const d1 = aroundD1(homeDatabase(), async (_, send) => {
      await send();
      return send();
    });
    const known = { sequence: sequence + 1, tickedAt: Date.now(), compareAfter: null };
    const tick = await recordTick({ ...context, db: new Database(d1) }, known);
    expect(tick.compareAfter).toBe("");
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
    const second = await recordTick({ ...context, db: new Database(d1) }, { ...first, compareAfter: null });
    expect(second.compareAfter).toBeNull();
    await runSql("UPDATE heartbeat SET sequence = ?1", first.sequence);
    await late?.();
    expect((await recordTick(context, second)).compareAfter).toBe("");
  });

  it("after a restore every allocator of the home compares itself, whichever of them hangs", async () => {
    const applications = await Promise.all(Array.from({ length: 5 }, () => createApplication()));
    const ids = applications.map(({ id }) => id);
    const [stuck] = ids;
    const { context, called } = hanging(stuck ? [stuck] : []);
    void compareChunk(context, "");
    await until(() => expect(called).toEqual(expect.arrayContaining(ids.slice(1))));
    const all = hanging([]);
    expect((await compareChunk(all.context, "")).next).toBeNull();
    expect(all.called).toEqual(expect.arrayContaining(ids));
  });
});
