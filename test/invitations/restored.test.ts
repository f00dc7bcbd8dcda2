import { evictDurableObject } from "cloudflare:test";
import { eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { badge, invitation, reconciliation, webhookEvent } from "../../src/shared/schema.ts";
import { sweep } from "../../src/worker/sweep.ts";
import { allocatorOf, withLedger } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { homeDatabase } from "../support/home.ts";
import { requestBadge } from "../support/http.ts";
import { claim, invite, listedNumbers, outcome, revoke } from "./support/calls.ts";
import { ahead, HOUR, moveClock, useStandingClock } from "./support/clock.ts";
import { useQuietLog } from "./support/log.ts";
import { type ApplicationRows, orm, readInvitation, readLedger, readRows } from "./support/storage.ts";

useQuietLog();
useStandingClock();

/** Puts back what D1 had; what came to be since then is gone. */
async function restoreD1({ id }: TestApplication, before: ApplicationRows): Promise<void> {
  await orm().batch([
    orm().delete(badge).where(eq(badge.applicationId, id)),
    orm().delete(invitation).where(eq(invitation.applicationId, id)),
    orm().delete(webhookEvent).where(eq(webhookEvent.applicationId, id)),
    ...before.badges.map((row) => orm().insert(badge).values(row)),
    ...before.invitations.map((row) => orm().insert(invitation).values(row)),
  ]);
}

const TABLES = ["segment", "lease", "reclaim", "free", "ready"] as const;
type ObjectState = Record<(typeof TABLES)[number], Record<string, SqlStorageValue>[]>;

/** All that an application's object has but its permutation key, which never changes. */
function copyObject(application: TestApplication): Promise<ObjectState> {
  return withLedger(application, (_, { sql }) => {
    const copy = (table: string) => sql.exec(`SELECT * FROM ${table}`).toArray();
    return {
      segment: copy("segment"),
      lease: copy("lease"),
      reclaim: copy("reclaim"),
      free: copy("free"),
      ready: copy("ready"),
    };
  });
}

/** Puts back what the object had: what its point-in-time recovery does, after which the object starts anew. */
async function restoreObject(application: TestApplication, before: ObjectState): Promise<void> {
  await withLedger(application, (_, { sql }) => {
    for (const table of TABLES) {
      sql.exec(`DELETE FROM ${table}`);
      for (const row of before[table]) {
        const columns = Object.keys(row);
        sql.exec(
          `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
          ...Object.values(row),
        );
      }
    }
  });
  await evictDurableObject(allocatorOf(application));
}

/** The number that the next device gets, or the refusal. */
async function nextNumber(application: TestApplication, udid = crypto.randomUUID()): Promise<number | string> {
  const answer = await requestBadge(application, udid, { userId: "somebody" });
  return answer.status === 201 ? Number(answer.body.badgeId) : outcome(answer);
}

/** Gives out whatever is left of the range. */
async function useUp(application: TestApplication): Promise<number[]> {
  const numbers: number[] = [];
  for (;;) {
    const number = await nextNumber(application);
    if (typeof number === "string") return numbers;
    numbers.push(number);
  }
}

/** What `reconcile` of the administration script asks for, and the sweep does. @returns the finished row */
async function reconcile({ id: applicationId }: TestApplication, restored: "d1" | "object") {
  const step = restored === "object" ? "leases" : "badges";
  const row = { applicationId, restored, requestedAt: Date.now(), step, through: 0 } as const;
  await orm().insert(reconciliation).values(row);
  await sweep([testContext().context]);
  const [done] = await orm().delete(reconciliation).where(eq(reconciliation.applicationId, applicationId)).returning();
  expect(done?.finishedAt).not.toBeNull();
  return done;
}

describe("D1 restored to before a revocation (contract section 5)", () => {
  it("does not let the token claim a number that has another owner by now", async () => {
    const application = await createApplication({ size: 2 });
    const other = await nextNumber(application);
    const { token, number } = await invite(application);
    const before = await readRows(application);
    await revoke(application, token);
    expect(await nextNumber(application, "somebody's")).toBe(number);
    await restoreD1(application, before);
    expect(outcome(await claim(application, "device", "alice", token))).toBe("410 REVOKED_INVITATION");
    expect(await listedNumbers(application)).toEqual([other]);
    expect(await nextNumber(application)).toBe("503 NUMBERS_EXHAUSTED");
    expect(outcome(await claim(application, "device", "alice", token))).toBe("410 REVOKED_INVITATION");
  });

  it("does not bring the token back to life while its number is free", async () => {
    const application = await createApplication({ size: 3 });
    const { token } = await invite(application);
    const before = await readRows(application);
    await revoke(application, token);
    await restoreD1(application, before);
    expect(outcome(await claim(application, "device", "alice", token))).toBe("410 REVOKED_INVITATION");
    expect(outcome(await revoke(application, token))).toBe("200");
    expect((await readLedger(application)).free).toHaveLength(1);
  });
});

describe("D1 restored to before a claim (contract sections 1 and 5)", () => {
  it("gives the number only to the user device that claimed it", async () => {
    const application = await createApplication({ size: 3 });
    const { token, number } = await invite(application);
    const before = await readRows(application);
    expect((await claim(application, "phone", "alice", token)).status).toBe(201);
    await restoreD1(application, before);
    expect(outcome(await claim(application, "thief", "mallory", token))).toBe("409 CLAIMED_INVITATION");
    expect(outcome(await claim(application, "phone", "bob", token))).toBe("409 CLAIMED_INVITATION");
    const again = await claim(application, "phone", "alice", token);
    expect(again).toMatchObject({ status: 201, body: { badgeId: String(number) } });
  });

  it.each(["revoked", "expired"])("keeps the number out of use when the invitation is %s afterwards", async (end) => {
    const application = await createApplication({ size: 3 });
    const { token, number } = await invite(application, ahead(HOUR));
    const before = await readRows(application);
    expect((await claim(application, "phone", "alice", token)).status).toBe(201);
    await restoreD1(application, before);
    if (end === "revoked") await revoke(application, token);
    else moveClock(2 * HOUR);
    await sweep([testContext().context]);
    expect(await readInvitation(token)).toMatchObject({ state: end });
    const others = await useUp(application);
    expect(others).toHaveLength(2);
    expect(others).not.toContain(number);
  });

  it("keeps the number out of use when D1 does not even know the invitation any more", async () => {
    const application = await createApplication({ size: 3 });
    const before = await readRows(application);
    const { token, number } = await invite(application);
    expect((await claim(application, "phone", "alice", token)).status).toBe(201);
    await restoreD1(application, before);
    await reconcile(application, "d1");
    expect(outcome(await claim(application, "phone", "alice", token))).toBe("404 UNKNOWN_INVITATION");
    const others = await useUp(application);
    expect(others).toHaveLength(2);
    expect(others).not.toContain(number);
  });
});

describe("reconcile, after D1 was restored", () => {
  it("ends invitations whose numbers went back since, and whoever got such a number has it again", async () => {
    const application = await createApplication({ size: 2 });
    const kept = await invite(application);
    const { token, number } = await invite(application);
    const before = await readRows(application);
    await revoke(application, token);
    expect(await nextNumber(application, "somebody's")).toBe(number);
    await restoreD1(application, before);
    expect(await reconcile(application, "d1")).toMatchObject({ checked: 2, changed: 1 });
    expect(await readInvitation(token)).toMatchObject({ state: "revoked" });
    expect(await nextNumber(application, "somebody's")).toBe(number);
    expect((await claim(application, "device", "alice", kept.token)).status).toBe(201);
    expect(await reconcile(application, "d1")).toMatchObject({ checked: 2, changed: 0 });
  });

  it("leaves another application's invitations alone", async () => {
    const [application, other] = [await createApplication({ size: 4 }), await createApplication({ size: 4 })];
    const { token } = await invite(other);
    await withLedger(other, (_, { sql }) => sql.exec("DELETE FROM lease"));
    expect(await reconcile(application, "d1")).toMatchObject({ checked: 0, changed: 0 });
    expect(await readInvitation(token)).toMatchObject({ state: "pending" });
  });
});

describe("reconcile, after an object was restored", () => {
  it("lets invitations be claimed that are newer than the object", async () => {
    const application = await createApplication({ size: 5 });
    const before = await copyObject(application);
    const { token, number } = await invite(application);
    await restoreObject(application, before);
    expect(outcome(await claim(application, "device", "alice", token))).toBe("410 REVOKED_INVITATION");
    expect(await reconcile(application, "object")).toMatchObject({ changed: 1 });
    expect(await claim(application, "device", "alice", token)).toMatchObject({
      status: 201,
      body: { badgeId: String(number) },
    });
  });

  it("removes D1's numbers from the free ones, and releases those that have ended since", async () => {
    const application = await createApplication({ size: 2 });
    const [first, second] = [await invite(application), await invite(application)];
    await revoke(application, first.token);
    const before = await copyObject(application);
    // Since then the free number went to a device, and the other one became free.
    expect(await nextNumber(application, "phone")).toBe(first.number);
    await revoke(application, second.token);
    await restoreObject(application, before);
    await reconcile(application, "object");
    expect(await readLedger(application)).toMatchObject({ free: [second.number] });
    expect(await nextNumber(application)).toBe(second.number);
    expect(await useUp(application)).toEqual([]);
  });

  it("remembers who claimed, and hands out every number once", async () => {
    const application = await createApplication({ size: 5 });
    const before = await copyObject(application);
    const { token, number } = await invite(application);
    const unclaimed = await readRows(application);
    expect((await claim(application, "phone", "alice", token)).status).toBe(201);
    const claimed = await readRows(application);
    await restoreObject(application, before);
    await reconcile(application, "object");
    // Now D1 forgets it as well.
    await restoreD1(application, unclaimed);
    expect(outcome(await claim(application, "thief", "mallory", token))).toBe("409 CLAIMED_INVITATION");
    await restoreD1(application, claimed);
    const others = await useUp(application);
    expect(others).toHaveLength(4);
    expect(others).not.toContain(number);
    expect(await listedNumbers(application)).toHaveLength(5);
  });

  it("changes nothing when nothing is amiss", async () => {
    const application = await createApplication({ size: 5 });
    const { token } = await invite(application);
    await invite(application);
    await claim(application, "phone", "alice", token);
    await nextNumber(application);
    const before = await copyObject(application);
    expect(await reconcile(application, "object")).toMatchObject({ changed: 0 });
    expect(await copyObject(application)).toEqual(before);
  });

  it("processes more than one chunk, and continues where a sweep stopped", async () => {
    const application = await createApplication({ size: 2000 });
    await homeDatabase()
      .prepare(
        `WITH RECURSIVE places (place) AS (SELECT 0 UNION ALL SELECT place + 1 FROM places WHERE place < 1199)
       INSERT INTO badge (number, application_id, device, user_id, position, turn, issued_at)
       SELECT ?2 + place, ?1, 'device-' || place, 'user', place + 1, 1, 1 FROM places`,
      )
      .bind(application.id, application.firstNumber)
      .run();
    expect(await reconcile(application, "object")).toMatchObject({ checked: 1200, changed: 1200 });
    const leases = await withLedger(application, (_, { sql }) =>
      sql.exec("SELECT count(*) AS leases FROM lease WHERE confirmed = 1").toArray(),
    );
    expect(leases).toEqual([{ leases: 1200 }]);
  });
});

describe("an object that was made before claims were noted", () => {
  it("gets the column when it is opened again, and keeps its leases", async () => {
    const application = await createApplication({ size: 3 });
    const { token, number } = await invite(application);
    await withLedger(application, (_, { sql }) => sql.exec("ALTER TABLE lease DROP COLUMN claimed_by").toArray());
    await evictDurableObject(allocatorOf(application));
    expect(await claim(application, "phone", "alice", token)).toMatchObject({
      status: 201,
      body: { badgeId: String(number) },
    });
  });
});
