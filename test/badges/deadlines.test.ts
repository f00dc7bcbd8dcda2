import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import { createApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { LOCKED } from "../support/faults.ts";
import { HeldTrips } from "../support/held.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { outcome } from "../support/http.ts";
import { isSettled, StandingTimers } from "../support/timers.ts";
import { requestQuietly } from "./support.ts";

let timers: StandingTimers;

afterEach(() => {
  timers.stop();
});

// An object whose D1 hangs: test/allocator/unknown-results.test.ts.
describe("a platform call that never settles (contract section 11)", () => {
  it("a badge call gets 503 10 s after its first try of D1 began, not sooner, however many tries there were", async () => {
    const application = await createApplication();
    timers = new StandingTimers();
    let tries = 0;
    const DB = aroundD1(homeDatabase(), async () => {
      tries++;
      if (tries === 1) await new Promise((resolve) => setTimeout(resolve, 9_000));
      else await new Promise(() => {});
      throw LOCKED;
    });
    const refused = requestQuietly(application, "device", { userId: "alice" }, bindDatabase(DB));
    await timers.pass(9_000, () => tries === 1);
    await timers.pass(999, () => tries === 2);
    expect(await isSettled(refused)).toBe(false);
    await timers.pass(1);
    expect(outcome(await refused)).toBe("503 UNAVAILABLE");
    expect((await refused).headers.get("retry-after")).toBe("2");
    expect(tries).toBe(2);
  });

  it("/health responds with 503 after 3 s when D1 hangs", async () => {
    timers = new StandingTimers();
    // The isolate may have asked D1 a moment ago.
    await timers.pass(1000);
    const held = new HeldTrips();
    const refused = callWith({ DB: aroundD1(env.DB, held.around) }, "GET", "/health");
    await timers.pass(2_999, () => held.count === 1);
    expect(await isSettled(refused)).toBe(false);
    await timers.pass(1);
    expect(outcome(await refused)).toBe("503 UNAVAILABLE");
    expect((await refused).headers.get("retry-after")).toBe("2");
  });
});
