import { describe, expect, it } from "vitest";
import { openBadgeStore } from "../../src/admin/badge/store.ts";
import { blockUser } from "../../src/shared/badge-life/blocks.ts";
import { takeStep } from "../../src/shared/badge-life/steps.ts";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { reconciliation } from "../../src/shared/schema.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { sweep } from "../support/sweep.ts";
import { claim, invite } from "../invitations/support/calls.ts";
import { MINUTE, moveClock, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { orm } from "../invitations/support/storage.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { aroundD1 } from "../support/d1.ts";
import { homeDatabase } from "../support/home.ts";
import { objectsSendTo, queueThat } from "../support/queue.ts";
import { copyD1, restoreD1 } from "./follower.ts";
import { getBadge, issueTo, runSweep } from "./life-support.ts";

useQuietLog();
useStandingClock();

async function passMinute(): Promise<void> {
  moveClock(MINUTE);
  await runSweep();
}

/** As `badge revoke` does it: in D1, without the application's object. */
async function revokeByScript({ id }: { id: ApplicationId }, number: string): Promise<void> {
  const store = await openBadgeStore(new Database(homeDatabase()));
  const { kind } = await takeStep(store, id, Number(number), { kind: "revoke" });
  expect(kind).toBe("taken");
}

/** As `reconcile ID --restored d1` does it. */
async function requestReconciliation({ id: applicationId }: { id: ApplicationId }): Promise<void> {
  const fresh = { restored: "d1", requestedAt: Date.now(), step: "badges", through: 0, finishedAt: null } as const;
  await orm()
    .insert(reconciliation)
    .values({ applicationId, ...fresh })
    .onConflictDoUpdate({ target: reconciliation.applicationId, set: fresh });
}

const stateOf = async (application: TestApplication, number: string) =>
  (await getBadge(application, number)).body.state;

describe("what the administration script revokes without the application's object (contract section 12)", () => {
  it("is remembered within a minute, and repeated by reconcile after D1 was restored", async () => {
    const application = await createApplication();
    const revoked = await issueTo(application, "phone-1", "alice");
    const kept = await issueTo(application, "phone-2", "alice");
    const { token, number } = await invite(application);
    await claim(application, "phone-3", "bob", token);
    const copy = await copyD1();
    await revokeByScript(application, revoked);
    const store = await openBadgeStore(new Database(homeDatabase()));
    const blocked = await blockUser(store, { applicationId: application.id, userId: "bob" });
    expect(blocked).toEqual({ userId: "bob", blocked: true, revoked: [String(number)] });
    await passMinute();
    await restoreD1(copy);
    const states = () => Promise.all([revoked, kept, String(number)].map((badge) => stateOf(application, badge)));
    expect(await states()).toEqual(["active", "active", "active"]);
    await requestReconciliation(application);
    await passMinute();
    expect(await states()).toEqual(["revoked", "active", "revoked"]);
  });

  it("is remembered also when a reconciliation is under way or about to end", async () => {
    const application = await createApplication();
    const early = await issueTo(application, "phone-1", "alice");
    const late = await issueTo(application, "phone-2", "alice");
    const copy = await copyD1();
    await requestReconciliation(application);
    await revokeByScript(application, early);
    let isRevoked = false;
    const meanwhile = aroundD1(homeDatabase(), async (statements, send) => {
      // By what it binds: the moment of the end, where other steps of the reconciliation write NULL.
      const isEnd = statements.some(
        ({ sql, parameters }) => sql.startsWith('update "reconciliation"') && parameters.includes(Date.now()),
      );
      if (isEnd && !isRevoked) {
        isRevoked = true;
        await revokeByScript(application, late);
      }
      return send();
    });
    moveClock(MINUTE);
    await sweep([testContext({ db: new Database(meanwhile) }).context]);
    expect(isRevoked).toBe(true);
    await passMinute();
    await passMinute();
    const [row] = (await orm().select().from(reconciliation)).filter(
      ({ applicationId }) => applicationId === application.id,
    );
    expect(row?.finishedAt).toEqual(expect.any(Number));
    await restoreD1(copy);
    await requestReconciliation(application);
    await passMinute();
    expect([await stateOf(application, early), await stateOf(application, late)]).toEqual(["revoked", "revoked"]);
  });

  it("does not restart a reconciliation that an administrator is waiting for (contract section 10)", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    await requestReconciliation(application);
    const read = async () =>
      (await orm().select().from(reconciliation)).find(({ applicationId }) => applicationId === application.id);
    const before = await read();
    await revokeByScript(application, number);
    expect(await read()).toEqual(before);
  });
});

describe("an event of the script's change (contract section 18)", () => {
  it("is found by the sweep, which wakes its delivery", async () => {
    objectsSendTo(queueThat(() => {}));
    const events = "badge:created,badge:revoked";
    const application = await createApplication({ webhookUrl: "https://app.example.com/hooks", events });
    const number = await issueTo(application, "phone", "alice");
    await homeDatabase().prepare("DELETE FROM webhook_event WHERE application_id = ?1").bind(application.id).run();
    await revokeByScript(application, number);
    const woken: unknown[] = [];
    moveClock(MINUTE);
    await sweep([testContext({ queue: queueThat((message) => void woken.push(message)) }).context]);
    const { results } = await homeDatabase()
      .prepare("SELECT id, event, payload FROM webhook_event WHERE application_id = ?1")
      .bind(application.id)
      .all();
    expect(results).toMatchObject([{ event: "badge:revoked" }]);
    expect(JSON.parse(String(results[0]?.payload))).toMatchObject({
      data: { id: number, state: "revoked", change: 2 },
    });
    expect(woken).toContainEqual({ applicationId: application.id, eventId: results[0]?.id });
  });
});
