import { beforeEach, describe, expect, it, vi } from "vitest";
import * as responses from "../../src/shared/overview-responses.ts";
import { countWithin } from "../../src/shared/statistics/count.ts";
import { viewStatistics } from "../../src/shared/statistics/view.ts";
import { CountedStatistics, readStatistics } from "../../src/worker/applications/statistics.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { billOf } from "../support/bill.ts";
import { testContext } from "../support/context.ts";
import { type AroundTrip, aroundD1, type Statement } from "../support/d1.ts";
import { homeDatabase, runSql } from "../support/home.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

let now = Date.now();

beforeEach(() => {
  now = Date.now();
  vi.spyOn(console, "log").mockImplementation(() => {});
});

/** Badges in the application's range: every tenth suspended, and every seventh ended. */
async function fill({ id, firstNumber }: TestApplication, count: number, values = 20): Promise<void> {
  await runSql(
    `WITH RECURSIVE place (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place WHERE n + 1 < ?3)
     INSERT INTO badge (number, application_id, device, user_id, position, turn, issued_at, metadata, state, expires_at)
     SELECT ?2 + n, ?1, 'd' || n, 'u' || n, n + 1, 1, ?4, json_object('os', 'OS ' || (n % ?5)),
       iif(n % 10, 'active', 'suspended'), iif(n % 7, NULL, 1000)
     FROM place`,
    id,
    firstNumber,
    count,
    now,
    values,
  );
}

const isChunk = (statements: readonly Statement[]): boolean =>
  statements.some(({ sql }) => /FROM badge WHERE number >/.test(sql));

/** Isolates that share D1, whose trips go through `around`. */
function service(application: TestApplication, around: AroundTrip = (_, send) => send()) {
  const db = () => new Database(aroundD1(homeDatabase(), around));
  return {
    isolate: () => {
      const { context, deferred } = testContext({ statistics: new CountedStatistics(), now: () => now });
      return {
        read: async () =>
          responses.statistics.strict().parse(await readStatistics({ ...context, db: db() }, application.id)),
        finish: () => Promise.all(deferred),
      };
    },
    db,
  };
}

describe("statistics (contract sections 19 and 21)", () => {
  it("are counted once, however many calls ask at the same time, in however many isolates", async () => {
    const application = await createApplication({ size: 100_000 });
    await fill(application, 15_000);
    let chunks = 0;
    const { isolate } = service(application, (statements, send) => {
      if (isChunk(statements)) chunks++;
      return send();
    });
    const all = await Promise.all(Array.from({ length: 20 }, () => isolate().read()));
    expect(chunks).toBe(8);
    for (const each of all) expect(each).toEqual(all[0]);
    expect(all[0]).toMatchObject({
      numbers: { size: 100_000, issued: 15_000, used: 15_000, left: 85_000, usedPercent: 15 },
      badgesByState: { expired: 2143 },
      asOf: new Date(now).toISOString(),
    });
    expect(all[0]?.badges.os).toMatchObject({
      values: Array.from({ length: 15 }, () => ({ badges: 750 })),
      others: 3750,
    });
  });

  it("of up to 20,000 badges are at most five minutes old; of more, an hour, and counted again in the background", async () => {
    const [small, large] = [await createApplication({ size: 100_000 }), await createApplication({ size: 100_000 })];
    await fill(small, 20_000);
    await fill(large, 20_001);
    const asOf = new Date(now).toISOString();
    for (const application of [small, large]) await service(application).isolate().read();
    now += 5 * MINUTE - 1;
    expect((await service(small).isolate().read()).asOf).toBe(asOf);
    now += 1;
    expect((await service(small).isolate().read()).asOf).toBe(new Date(now).toISOString());
    now += 24 * MINUTE;
    expect((await service(large).isolate().read()).asOf).toBe(asOf);
    now += 2 * MINUTE;
    const due = service(large).isolate();
    expect((await due.read()).asOf).toBe(asOf);
    await due.finish();
    expect((await service(large).isolate().read()).asOf).toBe(new Date(now).toISOString());
    now += 60 * MINUTE;
    expect((await service(large).isolate().read()).asOf).toBe(new Date(now).toISOString());
  });

  it("never need a statement that reads more than 7,000 rows", async () => {
    const application = await createApplication({ size: 100_000 });
    // Each with metadata of its own.
    await fill(application, 20_000, 20_000);
    await homeDatabase().batch([
      homeDatabase()
        .prepare(
          `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < 10000)
         INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
         SELECT ?1, 'evt_' || printf('%06d', n), 'badge:created', '{}', iif(n % 2, 'delivered', 'pending'), 0, n FROM place`,
        )
        .bind(application.id),
      homeDatabase()
        .prepare(
          `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < 10000)
         INSERT INTO invitation (digest, application_id, number, state, creator_device, expires_at, expires_at_time, created_at)
         SELECT ?1 || n, ?1, n, iif(n % 5, 'claimed', 'revoked'), '', '', 0, n / 100 FROM place`,
        )
        .bind(application.id),
    ]);
    const read: number[] = [];
    const { isolate } = service(application, async (statements, send) => {
      const result = await send();
      if (/^\s*SELECT/.test(statements[0]?.sql ?? "")) {
        for (const statement of statements) read.push((await billOf([statement], await again(statement))).rowsRead);
      }
      return result;
    });
    expect(await isolate().read()).toMatchObject({
      numbers: { issued: 20_000 },
      deliveries: [
        { state: "delivered", outcome: null, events: 5000 },
        { state: "pending", outcome: null, events: 5000 },
      ],
      invitations: { claimed: 8000, revoked: 2000 },
    });
    expect(Math.max(...read)).toBeLessThanOrEqual(7000);
    expect(Math.max(...read)).toBeGreaterThan(3000);
  });

  const again = ({ sql, parameters }: Statement) =>
    homeDatabase()
      .prepare(sql)
      .bind(...parameters)
      .all();

  it("that take longer than a call may are carried forward by the next ones, and are the same in the end", async () => {
    const application = await createApplication({ size: 100_000 });
    await fill(application, 15_000);
    const whole = await service(application).isolate().read();
    await runSql("DELETE FROM statistics");
    let chunks = 0;
    const startedAt = now;
    const wait = vi
      .spyOn(scheduler, "wait")
      .mockImplementation((milliseconds) => (milliseconds > SECOND ? new Promise(() => {}) : Promise.resolve()));
    const slow = service(application, async (statements, send) => {
      if (isChunk(statements)) [chunks, now] = [chunks + 1, now + 9 * SECOND];
      return send();
    });
    for (let call = 1; call <= 2; call++) {
      await expect(slow.isolate().read()).rejects.toThrow("statistics is unavailable");
      expect(chunks).toBe(3 * call);
    }
    expect(await slow.isolate().read()).toEqual({ ...whole, asOf: new Date(startedAt).toISOString() });
    expect(chunks).toBe(8);
    wait.mockRestore();
  });

  it("leave D1 to others three times as long as each chunk took", async () => {
    const application = await createApplication({ size: 100_000 });
    await fill(application, 15_000);
    const log: string[] = [];
    const { db } = service(application, (statements, send) => {
      if (!isChunk(statements)) return send();
      log.push("chunk");
      now += 30;
      return send();
    });
    const wait = async (milliseconds: number) => void log.push(`pause of ${milliseconds} ms`);
    const counted = { applicationId: application.id, name: "", firstNumber: application.firstNumber };
    const range = { lastNumber: application.firstNumber + 99_999, reuseAfterSeconds: 0 };
    const patience = { countMilliseconds: 1000, waitMilliseconds: 0 };
    await countWithin({ db: db(), now: () => now, wait }, { ...counted, ...range }, patience);
    expect(log.slice(0, 6)).toEqual(["chunk", "pause of 90 ms", "chunk", "pause of 90 ms", "chunk", "pause of 90 ms"]);
  });

  it("that could not be counted are not tried again for a minute, by any isolate", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const application = await createApplication();
    let [isBroken, chunks] = [true, 0];
    const { isolate } = service(application, (statements, send) => {
      if (!isChunk(statements)) return send();
      chunks++;
      return isBroken ? Promise.reject(new Error("D1 is out of order")) : send();
    });
    const first = isolate();
    for (const each of [first, first, isolate()]) await expect(each.read()).rejects.toThrow("is unavailable");
    expect(chunks).toBe(1);
    isBroken = false;
    now += MINUTE - 1;
    await expect(isolate().read()).rejects.toThrow("statistics is unavailable");
    expect(chunks).toBe(1);
    now += 1;
    expect(await first.read()).toMatchObject({ numbers: { issued: 0 } });
  });

  it("whose counting died with its isolate are counted by another call a minute later", async () => {
    const application = await createApplication();
    const never = new Promise<never>(() => {});
    const { db } = service(application, (statements, send) => (isChunk(statements) ? never : send()));
    const tools = { now: () => now, wait: async (milliseconds: number) => (now += milliseconds) };
    const counted = { applicationId: application.id, name: "", firstNumber: 1, lastNumber: 10, reuseAfterSeconds: 0 };
    const patience = { countMilliseconds: 1000, waitMilliseconds: 8000 };
    countWithin({ ...tools, db: db() }, counted, patience).catch(() => {});
    await scheduler.wait(50);
    const healthy = { ...tools, db: new Database(homeDatabase()) };
    expect(await countWithin(healthy, counted, patience)).toBeNull();
    now += MINUTE;
    const counts = await countWithin(healthy, counted, patience);
    const logins = { withToken: 0, withoutToken: 0, withWrongToken: 0 };
    expect(counts && viewStatistics({ ...counted, logins }, counts).numbers).toMatchObject({
      size: 10,
      issued: 0,
      left: 10,
    });
  });
});
