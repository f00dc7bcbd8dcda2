import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import { ENTRY } from "../allocator/support.ts";
import { outcome } from "../http/support/draft.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { aroundAllocators, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { LOCKED } from "../support/faults.ts";
import { HeldTrips } from "../support/held.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { isSettled, StandingTimers } from "../support/timers.ts";
import { requestQuietly, WEBHOOK_URL } from "./support.ts";

useQuietLog();

let timers: StandingTimers;

afterEach(() => {
  timers.stop();
});

const ask = (application: { id: string }, udid: string, bindings: Partial<Env> = {}) =>
  requestQuietly(application, udid, { userId: "alice" }, bindings);

describe("a platform call that never settles (contract section 11)", () => {
  /** What hangs; the call begins with these bindings, and has come that far when the count is 1. */
  const CALLS = {
    "the Worker's own call to D1": async () => {
      const held = new HeldTrips();
      return { bindings: bindDatabase(aroundD1(homeDatabase(), held.around)), count: () => held.count };
    },
    "the Worker's call to the object": async () => {
      let calls = 0;
      const ALLOCATOR = aroundAllocators(() => {
        calls++;
        return new Promise(() => {});
      });
      return { bindings: { ALLOCATOR }, count: () => calls };
    },
    "the object's call to D1": async (application: { id: string }) => {
      const held = new HeldTrips(ENTRY);
      await aroundObjectD1(application, () => held.around);
      return { bindings: {}, count: () => held.count };
    },
  };

  it.each(Object.entries(CALLS))(
    "a badge call gets 503 within 10 s when a hanging platform call is %s",
    async (name, hang) => {
      const application = await createApplication({ webhookUrl: WEBHOOK_URL });
      timers = new StandingTimers();
      const { bindings, count } = await hang(application);
      const refused = ask(application, "device", bindings);
      // Of a call of the object the Worker learns earlier.
      await timers.pass(name === "the Worker's own call to D1" ? 9_999 : 8_999, () => count() === 1);
      expect(await isSettled(refused)).toBe(false);
      await timers.pass(1);
      expect(outcome(await refused)).toBe("503 UNAVAILABLE");
      expect((await refused).headers.get("retry-after")).toBe("2");
    },
  );

  it("/health responds with 503 after 3 s when D1 hangs", async () => {
    timers = new StandingTimers();
    // The isolate may have asked a moment ago.
    await timers.pass(1000);
    const held = new HeldTrips();
    const refused = callWith({ DB: aroundD1(env.DB, held.around) }, new Request("https://badges.example/health"));
    await timers.pass(2_999, () => held.count === 1);
    expect(await isSettled(refused)).toBe(false);
    await timers.pass(1);
    expect(outcome(await refused)).toBe("503 UNAVAILABLE");
  });

  it("all tries of a platform call together have 10 s", async () => {
    const application = await createApplication();
    timers = new StandingTimers();
    let tries = 0;
    const DB = aroundD1(homeDatabase(), async () => {
      tries++;
      if (tries === 1) await new Promise((resolve) => setTimeout(resolve, 9_000));
      else await new Promise(() => {});
      throw LOCKED;
    });
    const refused = ask(application, "device", { ...bindDatabase(DB) });
    await timers.pass(9_000, () => tries === 1);
    await timers.pass(999, () => tries === 2);
    expect(await isSettled(refused)).toBe(false);
    await timers.pass(1);
    expect(outcome(await refused)).toBe("503 UNAVAILABLE");
    expect(tries).toBe(2);
  });

  it("a settled platform call leaves no timer behind", async () => {
    const application = await createApplication();
    timers = new StandingTimers();
    expect((await ask(application, "device")).status).toBe(201);
    expect(timers.pending).toBe(0);
  });

  it("a hanging call does not block the application's other devices for longer: the next group is written", async () => {
    const application = await createApplication({ webhookUrl: WEBHOOK_URL });
    timers = new StandingTimers();
    const held = new HeldTrips(ENTRY);
    await aroundObjectD1(application, () => held.around);
    const refused = ask(application, "first");
    await timers.pass(5_000, () => held.count === 1);
    const others = ["second", "third"].map((udid) => ask(application, udid));
    held.stop();
    await timers.pass(4_999);
    expect(await isSettled(Promise.race(others))).toBe(false);
    await timers.pass(1);
    expect(outcome(await refused)).toBe("503 UNAVAILABLE");
    for (const other of others) expect((await other).status).toBe(201);
  });
});
