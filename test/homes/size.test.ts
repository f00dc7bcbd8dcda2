import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, type Mock, vi } from "vitest";
import { warnIfHomeFills } from "../../src/worker/home-size.ts";
import worker from "../../src/worker/index.ts";
import { homeDatabase } from "../support/home.ts";
import { linesOf } from "../support/log-lines.ts";

let warned: Mock;

beforeEach(() => {
  warned = vi.spyOn(console, "warn").mockImplementation(() => {});
});

afterEach(() => void vi.restoreAllMocks());

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

const lines = () => linesOf(warned).filter(({ home }) => home === 7);

describe("a home's D1 that fills up (contract section 17)", () => {
  it("a home's D1 with 70 % of the 10 GB is logged", async () => {
    for (const bytes of [1, 6_999_999_999]) await warnIfHomeFills({ number: 7, d1: d1Of(bytes) });
    expect(lines()).toEqual([]);
    for (const bytes of [7_000_000_000, 9_999_999_999]) await warnIfHomeFills({ number: 7, d1: d1Of(bytes) });
    const line = { level: "warn", event: "home-fills-up", home: 7 };
    expect(lines()).toMatchObject([
      { ...line, usedPercent: 70 },
      { ...line, usedPercent: 99 },
    ]);
  });

  it("a home's D1 is measured once an hour, by the first tick", async () => {
    const hour = Date.UTC(2031, 0, 1, 5);
    const isMeasured = async (scheduledTime: number) => {
      warned.mockClear();
      await worker.scheduled({ scheduledTime, cron: "* * * * *", noRetry() {} }, { ...env, DB: d1Of(8_000_000_000) });
      return linesOf(warned).some(({ event, home }) => event === "home-fills-up" && home === 1);
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
    expect(lines()).toMatchObject([{ level: "warn", event: "home-not-measured", home: 7 }]);
  });
});
