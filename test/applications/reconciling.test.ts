import { inArray } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { describe, expect, it } from "vitest";
import { reconciliation } from "../../src/shared/schema.ts";
import { AllocatorClient } from "../../src/worker/allocator/client.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { sweep } from "../../src/worker/sweep.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { aroundAllocators } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { aroundD1 } from "../support/d1.ts";
import { boundHome, homeDatabase } from "../support/home.ts";
import { requestBadge } from "../support/http.ts";

const orm = drizzle(homeDatabase());
const log = useQuietLog();

/** What `reconcile` of the administration script asks for, of each a millisecond after the one before. */
async function request(applications: readonly TestApplication[]): Promise<void> {
  const rows = applications.map(({ id: applicationId }, index) => ({
    applicationId,
    restored: "object" as const,
    requestedAt: index + 1,
    step: "badges" as const,
    through: 0,
  }));
  await orm.insert(reconciliation).values(rows);
}

async function finished(applications: readonly TestApplication[]): Promise<boolean[]> {
  const ids = applications.map(({ id }) => id);
  const rows = await orm.select().from(reconciliation).where(inArray(reconciliation.applicationId, ids));
  return ids.map((id) => rows.find(({ applicationId }) => applicationId === id)?.finishedAt != null);
}

async function applicationWithBadge(): Promise<TestApplication> {
  const application = await createApplication({ size: 5 });
  expect((await requestBadge(application, "phone", { userId: "alice" })).status).toBe(201);
  return application;
}

/** Applications' objects, of which some fail: fast, or after as many milliseconds of the sweep's clock. */
function failingObjects(failing: readonly TestApplication[], onFailure = () => {}): AllocatorClient {
  const namespace = aroundAllocators((_, call) => call());
  return new AllocatorClient(
    new Proxy(namespace, {
      get: (target, method) => (id: string) => {
        if (failing.some((application) => application.id === id)) {
          onFailure();
          throw new Error("this object fails");
        }
        return Reflect.get(target, method)(id);
      },
    }),
    boundHome(),
  );
}

describe("one failing object (contract section 10: reconcile)", () => {
  it("delays no other application's reconciliation, is logged, and runs again in a later sweep", async () => {
    const applications = [
      await applicationWithBadge(),
      await applicationWithBadge(),
      await applicationWithBadge(),
      await applicationWithBadge(),
    ];
    const [first, , third] = applications;
    if (!first || !third) throw new Error("there are four");
    await request(applications);
    await sweep([testContext({ allocator: failingObjects([first, third]) }).context]);
    expect(await finished(applications)).toEqual([false, true, false, true]);
    const skipped = log.lines().filter(({ event }) => event === "reconciliation-skipped");
    expect(skipped.map(({ application }) => application).toSorted()).toEqual([first.id, third.id].toSorted());
    const [line] = log.lines().filter(({ event }) => event === "sweep");
    expect(line).toMatchObject({ reconciliationsSkipped: 2, chunksReconciled: 6 });
    await sweep([testContext().context]);
    expect(await finished(applications)).toEqual([true, true, true, true]);
  });

  it("that takes a sweep's whole time to fail does not take every sweep's", async () => {
    const applications = [await applicationWithBadge(), await applicationWithBadge()];
    const [slow, sound] = applications;
    if (!slow || !sound) throw new Error("there are two");
    await request(applications);
    let now = Date.now();
    const allocator = failingObjects([slow], () => {
      now += 20_000;
    });
    let sweeps = 0;
    for (; !(await finished([sound]))[0]; sweeps++) {
      expect(sweeps).toBeLessThan(200);
      await sweep([testContext({ allocator, now: () => now }).context]);
    }
    expect(await finished([slow])).toEqual([false]);
  });
});

describe("one invocation may ask D1 1,000 things, and each statement of a batch is one (D1: Limits)", () => {
  it("a sweep with more to do than that leaves the rest to the next one", async () => {
    const { id } = await createApplication();
    await homeDatabase()
      .prepare(
        `WITH RECURSIVE each (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM each WHERE n < 299)
       INSERT INTO application (id, name, first_number, last_number, sealed_device_key, sealing_version, created_at)
       SELECT 'app_of_many_' || n, 'Many', 8000000000 + n, 8000000000 + n, '', 9, 0 FROM each`,
      )
      .run();
    await homeDatabase()
      .prepare(
        `INSERT INTO reconciliation (application_id, restored, requested_at, step, through)
       SELECT id, 'd1', 1, 'badges', 0 FROM application WHERE id LIKE 'app_of_many_%' OR id = ?1`,
      )
      .bind(id)
      .run();
    const open = async () => (await orm.select().from(reconciliation)).filter(({ finishedAt }) => finishedAt === null);
    const before = (await open()).length;
    let statements = 0;
    const counting = aroundD1(homeDatabase(), (sent, send) => {
      statements += sent.length;
      return send();
    });
    const standing = Date.now();
    await sweep([testContext({ db: new Database(counting), now: () => standing }).context]);
    expect(statements).toBeLessThan(1000);
    const after = (await open()).length;
    expect(after).toBeLessThan(before);
    expect(log.lines()).toContainEqual(expect.objectContaining({ event: "sweep", isFinished: false }));
    for (let sweeps = 1; (await open()).length > 0; sweeps++) {
      expect(sweeps).toBeLessThan(20);
      await sweep([testContext({ now: () => standing }).context]);
    }
    expect(after, "one sweep was enough: this shows nothing").toBeGreaterThan(0);
  });
});
