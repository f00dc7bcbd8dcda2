import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import type { Database } from "../../src/admin/platform/database.ts";
import { HOUR_MILLISECONDS } from "../../src/shared/time.ts";
import { localHomes } from "./support/script.ts";

const { homes, database, admin, create } = await localHomes();

afterEach(() => void vi.restoreAllMocks());

const report = z.object({ findings: z.array(z.object({ check: z.string(), state: z.string(), detail: z.string() })) });

/** What doctor says of a check. */
async function finding(name: string) {
  const { stdout } = await admin("doctor", "--address", "http://127.0.0.1:9", "--json");
  return report.parse(JSON.parse(stdout)).findings.find(({ check }) => check === name);
}

/** From now on D1 reports this size with every result. */
function setSize(of: Database, bytes: number): void {
  const run = of.run.bind(of);
  vi.spyOn(of, "run").mockImplementation(async (step) => {
    const result = await run(step);
    if (isSized(result)) result.meta.size_after = bytes;
    return result;
  });
}

const sized = z.object({ meta: z.object({ size_after: z.number() }) });
const isSized = (result: unknown): result is z.infer<typeof sized> => sized.safeParse(result).success;

describe("doctor (contract sections 7, 17 and 21)", () => {
  it("doctor names an application that has used up the new badges of this clock hour", async () => {
    const { applicationId: id } = await create("--new-badges-per-hour", "5");
    const use = (hour: number, used: number) =>
      database.run((_, d1) =>
        d1
          .prepare("UPDATE application_head SET hour = ?, hour_used = ? WHERE application_id = ?")
          .bind(hour, used, id)
          .run(),
      );
    const hour = () => Math.floor(Date.now() / HOUR_MILLISECONDS);
    await use(hour(), 4);
    expect(await finding("New badges")).toMatchObject({ state: "ok" });
    await use(hour() - 1, 5);
    expect(await finding("New badges")).toMatchObject({ state: "ok" });
    await use(hour(), 5);
    expect(await finding("New badges")).toMatchObject({
      state: "warning",
      detail: `${id} (App): all 5 of this hour are used`,
    });
  });

  it("doctor names an application whose log has less than 31 days, because its allocator is full", async () => {
    const { applicationId: id } = await create();
    expect(await finding("Logs")).toMatchObject({ state: "ok", detail: "every allocator keeps 31 days of its log" });
    const setSince = (since: number) =>
      database.run((_, d1) =>
        d1.prepare("UPDATE application_head SET log_since = ? WHERE application_id = ?").bind(since, id).run(),
      );
    const day = 24 * HOUR_MILLISECONDS;
    const since = Date.now() - 12 * day;
    await setSince(since);
    const detail = `${id} (App): since ${new Date(since).toISOString()} only`;
    expect(await finding("Logs")).toMatchObject({ state: "warning", detail });
    await setSince(Date.now() - 31 * day - 1);
    expect(await finding("Logs")).toMatchObject({ state: "ok" });
  });

  it("doctor says how full the fullest home is", async () => {
    expect(await finding("Homes")).toMatchObject({
      state: "ok",
      detail: "the fullest uses 0 % of the 10 GB that D1 holds",
    });
  });

  it("doctor names each home that has 70 % of the 10 GB", async () => {
    const [second] = homes.others;
    if (!second) throw new Error("the tests have two homes");
    setSize(second.database, 6_999_999_999);
    expect(await finding("Homes")).toMatchObject({
      state: "ok",
      detail: "the fullest uses 69 % of the 10 GB that D1 holds",
    });
    vi.restoreAllMocks();
    setSize(second.database, 7_100_000_000);
    const full = { state: "warning", detail: "home 2: 71 % of the 10 GB that D1 holds" };
    expect(await finding("Homes")).toMatchObject(full);
  });
});
