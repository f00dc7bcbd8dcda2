import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DatabaseHealth } from "../../src/worker/database-health.ts";
import { callWith } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { outcome } from "./support/draft.ts";

let now = Date.UTC(2032, 0, 1);

beforeEach(() => {
  now += 10_000;
  vi.setSystemTime(now);
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Health checks of one isolate, whose round trips to D1 are counted. */
function checks(respond: () => Promise<void> = async () => {}) {
  let asked = 0;
  const DB = aroundD1(env.DB, async (_, send) => {
    asked++;
    await respond();
    return send();
  });
  const ask = () => callWith({ DB }, new Request("https://badges.example/health"));
  return { ask, check: () => ask().then(outcome), asked: () => asked };
}

describe("/health (contract section 7)", () => {
  it("/health queries D1 at most once a second in each isolate", async () => {
    const { check, asked } = checks();
    expect(new Set(await Promise.all(Array.from({ length: 200 }, check)))).toEqual(new Set(["200"]));
    vi.setSystemTime(now + 999);
    expect(await check()).toBe("200");
    expect(asked()).toBe(1);
    vi.setSystemTime(now + 1000);
    expect(await check()).toBe("200");
    expect(asked()).toBe(2);
  });

  it("all waiting calls of /health get 503 while D1 does not respond", async () => {
    const { ask, asked } = checks(async () => {
      await scheduler.wait(50);
      throw new Error("down");
    });
    const answers = await Promise.all([ask(), ask(), ask()]);
    expect(answers.map(outcome)).toEqual(Array(3).fill("503 UNAVAILABLE"));
    for (const { headers } of answers) expect(headers.get("retry-after")).toBe("2");
    expect(asked()).toBe(1);
  });

  it("a call of /health that waits for another's query gets 503 when that has not ended within 3 s", async () => {
    let waited = 0;
    vi.spyOn(scheduler, "wait").mockImplementation(async (milliseconds) => {
      waited += milliseconds;
    });
    const health = new DatabaseHealth();
    void health.check(now, () => new Promise(() => {}));
    expect(await health.check(now, async () => {})).toBe(false);
    expect(waited).toBe(3000);
  });

  it("/health names the deployed release in a header, so that a deployment sees its own respond (contract section 25)", async () => {
    const healthOf = (bindings: object) => callWith(bindings, new Request("https://badges.example/health"));
    expect((await healthOf({ RELEASE: "0.9.0+1f0c93ab77de" })).headers.get("release")).toBe("0.9.0+1f0c93ab77de");
    expect((await healthOf({})).headers.has("release")).toBe(false);
  });

  it("/health does not say for longer than a second that D1 responds, or that it does not", async () => {
    let isDown = false;
    const { check } = checks(async () => {
      if (isDown) throw new Error("down");
    });
    const told: string[] = [];
    for (const after of [false, true, false]) {
      isDown = after;
      now += 1000;
      vi.setSystemTime(now);
      told.push(await check());
    }
    expect(told).toEqual(["200", "503 UNAVAILABLE", "200"]);
  });
});
