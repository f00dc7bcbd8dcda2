import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { and, eq } from "drizzle-orm";
import "../../src/admin/platform/quick-loading.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApplication } from "../../src/admin/operations/application-create.ts";
import { listEvents, replayEvent, replayExhausted } from "../../src/admin/operations/events.ts";
import { ensureLocalSealing } from "../../src/admin/operations/local-sealing.ts";
import { testEndpoint } from "../../src/admin/operations/test-event.ts";
import type { Database } from "../../src/admin/platform/database.ts";
import { localState } from "../../src/admin/platform/paths.ts";
import { openDatabase } from "../../src/admin/session.ts";
import { newEventId } from "../../src/identifiers.ts";
import { application, webhookEvent } from "../../src/storage/schema.ts";

const folder = mkdtempSync(join(tmpdir(), "badge-admin-test-"));
let database: Database;
let close: () => Promise<void>;

beforeAll(async () => {
  process.env.BADGE_STATE_DIR = folder;
  ({ database, close } = await openDatabase(undefined));
  await ensureLocalSealing(database, localState());
});

afterAll(async () => {
  await close?.();
  rmSync(folder, { recursive: true, force: true });
});

async function create(webhookUrl: string | null = "https://app.example.com/hooks"): Promise<string> {
  const plain = { name: "Test", requireSecret: false, reuseAfterSeconds: 0, signatureLifetimeSeconds: null };
  return (await createApplication(database, { ...plain, webhookUrl })).applicationId;
}

type EventRow = typeof webhookEvent.$inferInsert;

/** Records an event of the given second, and gives its ID. */
async function record(applicationId: string, second: number, changes: Partial<EventRow> = {}): Promise<string> {
  const createdAt = second * 1000;
  const id = newEventId(createdAt);
  const plain = { event: "badge:created", payload: "{}", state: "pending", dueAt: createdAt, createdAt } as const;
  await database.run((orm) => orm.insert(webhookEvent).values({ applicationId, id, ...plain, ...changes }));
  return id;
}

const find = (id: string) =>
  database.run((orm) => orm.select().from(webhookEvent).where(eq(webhookEvent.id, id)).get());

const hold = (applicationId: string) =>
  database.run((orm) => orm.update(application).set({ webhookHeldAt: 1 }).where(eq(application.id, applicationId)));

describe("webhook list", () => {
  it("has the newest first, with the keys of the contract", async () => {
    const applicationId = await create();
    const first = await record(applicationId, 1, {
      state: "delivered",
      attempts: 2,
      lastStatus: 204,
      deliveredAt: 9000,
    });
    const second = await record(applicationId, 2);
    expect(await listEvents(database, applicationId, { state: undefined, limit: 100 })).toEqual([
      {
        id: second,
        event: "badge:created",
        state: "pending",
        attempts: 0,
        lastStatus: null,
        createdAt: "1970-01-01T00:00:02.000Z",
        deliveredAt: null,
      },
      {
        id: first,
        event: "badge:created",
        state: "delivered",
        attempts: 2,
        lastStatus: 204,
        createdAt: "1970-01-01T00:00:01.000Z",
        deliveredAt: "1970-01-01T00:00:09.000Z",
      },
    ]);
  });

  it("is of one application, one state, and at most so many", async () => {
    const applicationId = await create();
    await record(await create(), 1);
    const held = await record(applicationId, 2, { state: "held" });
    const newest = await record(applicationId, 3);
    const ids = async (state: "held" | undefined, limit: number) =>
      (await listEvents(database, applicationId, { state, limit })).map(({ id }) => id);
    expect(await ids("held", 100)).toEqual([held]);
    expect(await ids(undefined, 1)).toEqual([newest]);
  });
});

describe("webhook replay", () => {
  it("makes an event due with all its attempts before it", async () => {
    const applicationId = await create();
    for (const state of ["delivered", "exhausted", "held"] as const) {
      const id = await record(applicationId, 1, { state, attempts: 14, deliveredAt: 5 });
      await replayEvent(database, id);
      expect(await find(id)).toMatchObject({ state: "pending", attempts: 0, deliveredAt: null });
    }
  });

  it("leaves a pending event alone, so it can be run twice", async () => {
    const id = await record(await create(), 1, { attempts: 3, dueAt: 77 });
    await replayEvent(database, id);
    expect(await find(id)).toMatchObject({ state: "pending", attempts: 3, dueAt: 77 });
  });

  it("makes all exhausted events of one application due, the oldest first", async () => {
    const applicationId = await create();
    const other = await record(await create(), 1, { state: "exhausted" });
    const ids = [
      await record(applicationId, 3, { state: "exhausted", attempts: 14 }),
      await record(applicationId, 1, { state: "exhausted", attempts: 14 }),
      await record(applicationId, 2, { state: "exhausted", attempts: 14 }),
    ];
    const delivered = await record(applicationId, 4, { state: "delivered" });
    expect(await replayExhausted(database, applicationId)).toEqual({ applicationId, replayed: 3 });
    expect(await replayExhausted(database, applicationId)).toEqual({ applicationId, replayed: 0 });
    const isDue = and(eq(webhookEvent.applicationId, applicationId), eq(webhookEvent.state, "pending"));
    const due = await database.run((orm) => orm.select().from(webhookEvent).where(isDue).orderBy(webhookEvent.dueAt));
    expect(due.map(({ id }) => id)).toEqual([ids[1], ids[2], ids[0]]);
    expect((await find(delivered))?.state).toBe("delivered");
    expect((await find(other))?.state).toBe("exhausted");
  });

  it("is refused without an endpoint that takes events", async () => {
    const silent = await create(null);
    await expect(replayEvent(database, await record(silent, 1, { state: "held" }))).rejects.toThrow("no webhook URL");
    await expect(replayExhausted(database, silent)).rejects.toThrow("no webhook URL");
    const failing = await create();
    await hold(failing);
    await expect(replayExhausted(database, failing)).rejects.toThrow("are held");
    await expect(replayEvent(database, newEventId(1))).rejects.toThrow("There is no event");
    await expect(replayEvent(database, "evt_1")).rejects.toThrow("is not an event ID");
  });
});

describe("webhook test", () => {
  /** Does what the service does with a test event: sends it and records how that went. */
  async function answerTest(applicationId: string, result: Partial<EventRow>): Promise<string> {
    for (;;) {
      const isTest = and(eq(webhookEvent.applicationId, applicationId), eq(webhookEvent.event, "webhook:test"));
      const [event] = await database.run((orm) => orm.select().from(webhookEvent).where(isTest));
      if (event !== undefined) {
        await database.run((orm) => orm.update(webhookEvent).set(result).where(isTest));
        return event.payload;
      }
      await wait(20);
    }
  }

  it("waits for the service and tells the answer", async () => {
    const applicationId = await create();
    const answer = { lastStatus: 200, lastOutcome: "answered", lastMilliseconds: 12, lastResponse: "thanks" };
    const [result, payload] = await Promise.all([
      testEndpoint(database, applicationId, 5000),
      answerTest(applicationId, { state: "delivered", attempts: 1, ...answer }),
    ]);
    expect(result).toEqual({
      eventId: expect.stringMatching(/^evt_/),
      url: "https://app.example.com/hooks",
      delivered: true,
      status: 200,
      outcome: "answered",
      milliseconds: 12,
      response: "thanks",
    });
    const createdAt = expect.stringMatching(/Z$/);
    expect(JSON.parse(payload)).toEqual({ id: result.eventId, event: "webhook:test", createdAt, data: {} });
  });

  it("tells a failure", async () => {
    const applicationId = await create();
    const answer = { lastStatus: null, lastOutcome: "timeout", lastMilliseconds: 15_000, lastResponse: null };
    const [result] = await Promise.all([
      testEndpoint(database, applicationId, 5000),
      answerTest(applicationId, { state: "exhausted", attempts: 1, ...answer }),
    ]);
    expect(result).toMatchObject({ delivered: false, status: null, outcome: "timeout" });
  });

  it("takes the event back when nobody sends it", async () => {
    const applicationId = await create();
    await expect(testEndpoint(database, applicationId, 0)).rejects.toThrow("the service must be running");
    expect(await listEvents(database, applicationId, { state: undefined, limit: 1 })).toEqual([]);
  });

  it("needs a URL", async () => {
    await expect(testEndpoint(database, await create(null), 0)).rejects.toThrow("no webhook URL");
  });
});
