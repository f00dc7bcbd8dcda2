import { eq } from "drizzle-orm";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { logSampleCheck } from "../../src/admin/doctor/service-checks.ts";
import type { Database } from "../../src/admin/platform/database.ts";
import { type ApplicationId, newEventId } from "../../src/shared/identifiers.ts";
import { INITIAL_HEAD } from "../../src/shared/initial-head.ts";
import { applicationHead, heartbeat, webhookEvent } from "../../src/shared/schema.ts";
import { HOUR_MILLISECONDS } from "../../src/shared/time.ts";
import { localHomes } from "./support/script.ts";

const { homes, database, admin, create } = await localHomes();

afterEach(() => void vi.restoreAllMocks());

const DOCTOR = ["doctor", "--address", "http://127.0.0.1:9"] as const;
const found = z.object({ check: z.string(), state: z.string(), detail: z.string(), advice: z.string().nullable() });

/** The exit code, and the findings by their checks. */
async function diagnose() {
  const { code, stdout } = await admin(...DOCTOR, "--json");
  const { findings } = z.object({ findings: z.array(found) }).parse(JSON.parse(stdout));
  expect(new Set(findings.map(({ check }) => check)).size).toBe(findings.length);
  return { code, findings: new Map(findings.map((each) => [each.check, each])) };
}

const finding = async (name: string) => (await diagnose()).findings.get(name);

const changeHead = (id: ApplicationId, change: Partial<typeof applicationHead.$inferInsert>) =>
  database.run((orm) => orm.update(applicationHead).set(change).where(eq(applicationHead.applicationId, id)));

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

describe("doctor (contract sections 7, 17, 21 and 25)", () => {
  it("doctor says what is wrong with local state, and what to do", async () => {
    const { code, findings } = await diagnose();
    expect(code).toBe(1);
    expect(findings.get("Health")).toMatchObject({ state: "error", advice: expect.stringContaining("npm start") });
    // Nothing sweeps here.
    expect(findings.get("Sweep")).toMatchObject({ state: "error" });
    for (const check of ["Migrations", "Clock", "Number ranges"]) expect(findings.get(check)?.state).toBe("ok");
    for (const { state, advice } of findings.values()) expect(advice === null).toBe(state === "ok");
  });

  it.each([
    ["1", "every line"],
    [undefined, "every line"],
    ["50", "one line in 50 of successful requests"],
    ["0", "0 is not a whole number from 1 on, so every line is written"],
  ])("doctor says of LOG_SAMPLE %j: %s", async (text, detail) => {
    expect(await logSampleCheck(text).run()).toMatchObject({ detail });
  });

  it("doctor goes by D1's clock where this computer's is wrong", async () => {
    const now = Date.now();
    const tickedAt = (age: number) => ({ tickedAt: now - age, sequence: 1 });
    const sweepWith = async (age: number, skew: number) => {
      await homes.map(({ database }) =>
        database.run((orm) => orm.insert(heartbeat).values({ id: 1, ...tickedAt(age) })),
      );
      vi.spyOn(Date, "now").mockReturnValue(now + skew);
      const found = await finding("Sweep").finally(() => vi.restoreAllMocks());
      await homes.map(({ database }) => database.run((orm) => orm.delete(heartbeat)));
      return found?.state;
    };
    expect(await sweepWith(10 * 60_000, -HOUR_MILLISECONDS)).toBe("error");
    expect(await sweepWith(0, HOUR_MILLISECONDS)).toBe("ok");
  });

  it("doctor counts waiting deliveries, and says how full a range is", async () => {
    const { applicationId: id } = await create("--first", "500", "--last", "509");
    const event = { applicationId: id, event: "badge:created", payload: "{}", dueAt: 0, createdAt: 1 } as const;
    const states = ["held", "exhausted", "exhausted", "delivered"] as const;
    const rangeSegments = [{ first: 500, size: 10, used: 10 }];
    await changeHead(id, { rangeSegments, statistics: { ...INITIAL_HEAD.statistics, freed: 1 } });
    await database.run((orm) =>
      orm.insert(webhookEvent).values(states.map((state, index) => ({ ...event, id: newEventId(index), state }))),
    );
    const { stdout } = await admin(...DOCTOR);
    expect(stdout).toContain("1 held, 2 exhausted");
    expect(stdout).toContain(`${id} (App): 90 % used`);
    await database.run((orm) =>
      orm.update(webhookEvent).set({ state: "pending" }).where(eq(webhookEvent.state, "held")),
    );
    expect((await admin(...DOCTOR)).stdout).toContain("1 event due for over 10 minutes");
    // Replayed after its attempts, it waits for its turn.
    await database.run((orm) =>
      orm.update(webhookEvent).set({ dueAt: 0, lastOutcome: "answered" }).where(eq(webhookEvent.state, "pending")),
    );
    expect((await admin(...DOCTOR)).stdout).not.toContain("due for over 10 minutes");
  });

  it("doctor names an application that has used up this hour's new badges, or whose allocator keeps less than 31 days of its log", async () => {
    const { applicationId: id } = await create("--new-badges-per-hour", "5");
    const hour = Math.floor(Date.now() / HOUR_MILLISECONDS);
    for (const used of [
      { hour, hourUsed: 4 },
      { hour: hour - 1, hourUsed: 5 },
    ]) {
      await changeHead(id, used);
      expect(await finding("New badges")).toMatchObject({ state: "ok" });
    }
    await changeHead(id, { hour, hourUsed: 5 });
    const detail = `${id} (App): all 5 of this hour are used`;
    expect(await finding("New badges")).toMatchObject({ state: "warning", detail });
    const daysAgo = (days: number) => Date.now() - days * 24 * HOUR_MILLISECONDS;
    await changeHead(id, { logSince: daysAgo(31) - 1 });
    expect(await finding("Logs")).toMatchObject({ state: "ok" });
    const logSince = daysAgo(12);
    await changeHead(id, { logSince });
    const since = `${id} (App): since ${new Date(logSince).toISOString()} only`;
    expect(await finding("Logs")).toMatchObject({ state: "warning", detail: since });
  });

  it("doctor says how full the fullest home is, and names each home that has 70 % of the 10 GB", async () => {
    const { database: second } = homes.get(2);
    const detail = "the fullest uses 69 % of the 10 GB that D1 holds";
    setSize(second, 6_999_999_999);
    expect(await finding("Homes")).toMatchObject({ state: "ok", detail });
    vi.restoreAllMocks();
    setSize(second, 7_100_000_000);
    const full = { state: "warning", detail: "home 2: 71 % of the 10 GB that D1 holds" };
    expect(await finding("Homes")).toMatchObject(full);
  });
});
