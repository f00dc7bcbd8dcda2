import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Context } from "../../src/worker/context.ts";
import { homesOf } from "../../src/worker/homes.ts";
import worker from "../../src/worker/index.ts";
import { compareObjects, recordDue } from "../../src/worker/scheduling/due.ts";
import { noteTick, type Tick } from "../../src/worker/scheduling/restorations.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { putIntoInbox, resultOf } from "../core/support.ts";
import { claim, type Invitation, invite } from "../invitations/support/calls.ts";
import { ahead, DAY, moveClock, SECOND, useStandingClock } from "../invitations/support/clock.ts";
import { interceptedContext } from "../invitations/support/intercepted.ts";
import { readInvitation } from "../invitations/support/storage.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { contextOf, testContext } from "../support/context.ts";
import { aroundD1 } from "../support/d1.ts";
import { homeDatabase, testHome } from "../support/home.ts";
import { call, serverHeaders } from "../support/http.ts";
import { linesOf } from "../support/log-lines.ts";
import { sweep } from "../support/sweep.ts";
import { until } from "../support/until.ts";

const lines = { info: vi.fn(), warn: vi.fn(), error: vi.fn() };

useStandingClock();

beforeEach(() => {
  lines.info = vi.spyOn(console, "log").mockImplementation(() => {});
  lines.warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  lines.error = vi.spyOn(console, "error").mockImplementation(() => {});
  for (const line of Object.values(lines)) line.mockClear();
});

interface Due {
  application: TestApplication;
  invitation: Invitation;
}

/** Applications of this file's home, each with an invitation that ends in a second. */
async function addDue(count: number): Promise<Due[]> {
  const add = async (): Promise<Due> => {
    const application = await createApplication();
    return { application, invitation: await invite(application, ahead(SECOND)) };
  };
  return Promise.all(Array.from({ length: count }, add));
}

const states = (all: readonly Due[]): Promise<string[]> =>
  Promise.all(all.map(async ({ invitation }) => (await readInvitation(invitation.token)).state));

/** A context in which the clock's calls of some objects never come back; those of the others are noted. */
function hanging(applications: readonly string[]): { context: Context; called: string[] } {
  const called: string[] = [];
  const context = interceptedContext((target, send) => {
    if (target.part === "D1") return send();
    if (applications.includes(target.applicationId)) return new Promise(() => {});
    called.push(target.applicationId);
    return send();
  });
  return { context, called };
}

const homeClock = () => env.HOME_CLOCK.getByName(String(testHome()));

describe("a home's clock (contract sections 5 and 17)", () => {
  it("waits for no object: one that hangs delays no other application", async () => {
    const due = await addDue(8);
    moveClock(SECOND);
    const stuck = due.slice(0, 3);
    void recordDue(hanging(stuck.map(({ application }) => application.id)).context);
    await until(async () => expect(new Set(await states(due.slice(3)))).toEqual(new Set(["expired"])));
    expect(new Set(await states(stuck))).toEqual(new Set(["pending"]));
    await recordDue(testContext().context);
    expect(new Set(await states(stuck))).toEqual(new Set(["expired"]));
  });

  it("waits for no other home: each one's clock is called beside the others, in an object of its own", async () => {
    const called: number[] = [];
    const HOME_CLOCK = new Proxy(env.HOME_CLOCK, {
      get: () => () => ({
        tick: (home: number) => {
          called.push(home);
          return home === 1 ? new Promise(() => {}) : Promise.resolve();
        },
      }),
    });
    const controller = { scheduledTime: Date.now(), cron: "* * * * *", noRetry() {} };
    void worker.scheduled(controller, { ...env, HOME_CLOCK });
    await until(() => expect(called.toSorted()).toEqual(homesOf(env).map(({ number }) => number)));
  });

  it("sweeps each home although another's D1 is down", async () => {
    const [due] = await addDue(1);
    if (!due) throw new Error("there is one");
    moveClock(SECOND);
    const down = aroundD1(homeDatabase(), () => Promise.reject(new Error("D1_ERROR: no such table: SQLITE_ERROR")));
    await sweep([{ ...contextOf(3 - testHome()), db: new Database(down) }, testContext().context]);
    expect(await states([due])).toEqual(["expired"]);
    const failed = linesOf(lines.error).filter(({ event }) => event === "sweep-part-failed");
    expect(new Set(failed.map(({ home }) => home))).toEqual(new Set([3 - testHome()]));
  });

  it("carries out commands of the script every few seconds, and what is due (contract section 21)", async () => {
    vi.useRealTimers();
    const application = await createApplication();
    const { token, number } = await invite(application, ahead(DAY));
    expect((await claim(application, "phone", "ada", token)).status).toBe(201);
    await homeClock().tick(testHome());
    const command = await putIntoInbox(application, { kind: "suspend", number });
    expect(await runDurableObjectAlarm(homeClock())).toBe(true);
    const badge = await call("GET", `/v1/badges/${number}`, { headers: serverHeaders(application) });
    expect(badge.body).toMatchObject({ state: "suspended" });
    expect(await resultOf(command)).toMatchObject({ kind: "badge" });
  });
});

describe("a restoration of D1 (contract section 21)", () => {
  const before: Tick = { sequence: 0, tickedAt: 0, compareAfter: null };

  it("is noticed when the clock row is behind, or may have been missed after a gap of over 90 s", async () => {
    const { context } = testContext();
    const first = await noteTick(context, undefined);
    expect(first.compareAfter).toBe("");
    const tickedAt = Date.now();
    const tick = (known: Partial<Tick>) => noteTick(context, { ...before, tickedAt, ...known });
    expect((await tick({ sequence: first.sequence })).compareAfter).toBeNull();
    expect((await tick({ sequence: first.sequence, compareAfter: "app_1" })).compareAfter).toBe("app_1");
    expect((await tick({ sequence: 1, tickedAt: tickedAt - 90_001 })).compareAfter).toBe("");
    expect((await tick({ sequence: 1, tickedAt: tickedAt - 90_000 })).compareAfter).toBeNull();
    expect(linesOf(lines.warn)).toEqual([]);
    expect((await tick({ sequence: 1_000_000 })).compareAfter).toBe("");
    expect(linesOf(lines.warn)).toMatchObject([{ event: "restoration-noticed", home: testHome() }]);
  });

  it("lets every object of the home compare itself, whichever of them hangs", async () => {
    const applications = await Promise.all(Array.from({ length: 5 }, () => createApplication()));
    const ids = applications.map(({ id }) => id);
    const [stuck] = ids;
    const { context, called } = hanging(stuck ? [stuck] : []);
    void compareObjects(context, "");
    await until(() => expect(called).toEqual(expect.arrayContaining(ids.slice(1))));
    const all = hanging([]);
    expect(await compareObjects(all.context, "")).toBeNull();
    expect(all.called).toEqual(expect.arrayContaining(ids));
  });
});
