import { setTimeout as wait } from "node:timers/promises";
import { and, eq, sql } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { setDisabled } from "../../src/admin/application/commands.ts";
import { createApplication } from "../../src/admin/application/create.ts";
import { listEvents } from "../../src/admin/webhook/commands.ts";
import { replayEvent, replayExhausted } from "../../src/admin/webhook/replay.ts";
import { showEvent } from "../../src/admin/webhook/show.ts";
import { testEndpoint } from "../../src/admin/webhook/test.ts";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { newEventId } from "../../src/shared/identifiers.ts";
import { application, history, webhookEvent } from "../../src/shared/schema.ts";
import { localHomes } from "./support/script.ts";

const { homes, database } = await localHomes();

async function create(webhookUrl: string | null = "https://app.example.com/hooks"): Promise<ApplicationId> {
  return (await createApplication(homes, { name: "Test", webhookUrl })).applicationId;
}

type EventRow = typeof webhookEvent.$inferInsert;

/** Records an event of the given second, and gives its ID. */
async function record(applicationId: ApplicationId, second: number, changes: Partial<EventRow> = {}): Promise<string> {
  const createdAt = second * 1000;
  const id = newEventId(createdAt);
  const plain = { event: "badge:created", payload: "{}", state: "pending", dueAt: createdAt, createdAt } as const;
  await database.run((orm) => orm.insert(webhookEvent).values({ applicationId, id, ...plain, ...changes }));
  return id;
}

const find = (id: string) =>
  database.run((orm) => orm.select().from(webhookEvent).where(eq(webhookEvent.id, id)).get());

const hold = (applicationId: ApplicationId) =>
  database.run((orm) => orm.update(application).set({ webhookHeldAt: 1 }).where(eq(application.id, applicationId)));

describe("webhook list (contract section 10)", () => {
  it("lists the newest first, with the keys of the contract", async () => {
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

  it("can be limited by application, state and number", async () => {
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

describe("webhook replay (contract section 10)", () => {
  it.each(["delivered", "exhausted", "held"] as const)(
    "makes a %s event due before all others, with all its attempts before it",
    async (state) => {
      const applicationId = await create();
      await record(applicationId, 1, { dueAt: 0 });
      const id = await record(applicationId, 2, { state, attempts: 14, deliveredAt: 5 });
      const replayed = { id, applicationId, previousState: state, previousAttemptAt: null, disabled: false };
      expect(await replayEvent(database, id)).toEqual(replayed);
      expect(await find(id)).toMatchObject({ state: "pending", attempts: 0, dueAt: -1, deliveredAt: null });
    },
  );

  it("sends an event that waits for a retry at once, also when it is run twice", async () => {
    const nextAttempt = Date.now() + 10 * 3_600_000;
    const applicationId = await create();
    const id = await record(applicationId, 1, { attempts: 6, dueAt: nextAttempt });
    const previousAttemptAt = new Date(nextAttempt).toISOString();
    const first = { id, applicationId, previousState: "pending", previousAttemptAt, disabled: false };
    expect(await replayEvent(database, id)).toEqual(first);
    expect(await find(id)).toMatchObject({ state: "pending", attempts: 0, dueAt: -1 });
    expect(await replayEvent(database, id)).toEqual({ ...first, previousAttemptAt: null });
    expect(await find(id)).toMatchObject({ state: "pending", attempts: 0, dueAt: -1 });
  });

  it("says that the events of a disabled application wait", async () => {
    const applicationId = await create();
    const id = await record(applicationId, 1, { state: "exhausted" });
    await setDisabled(database, applicationId, true);
    expect(await replayEvent(database, id)).toMatchObject({ disabled: true });
    expect(await replayExhausted(database, applicationId)).toMatchObject({ disabled: true });
  });

  it("makes all exhausted events of an application due at once, oldest first", async () => {
    const applicationId = await create();
    const other = await record(await create(), 1, { state: "exhausted" });
    const ids = [
      await record(applicationId, 1, { state: "exhausted", attempts: 14 }),
      await record(applicationId, 1, { state: "exhausted", attempts: 14 }),
      await record(applicationId, 2, { state: "exhausted", attempts: 14 }),
    ];
    const test = await record(applicationId, 3, { event: "webhook:test", state: "exhausted", attempts: 1 });
    const delivered = await record(applicationId, 4, { state: "delivered" });
    const replayed = { applicationId, disabled: false };
    expect(await replayExhausted(database, applicationId)).toEqual({ ...replayed, replayed: 3 });
    expect(await replayExhausted(database, applicationId)).toEqual({ ...replayed, replayed: 0 });
    for (const id of ids) expect(await find(id)).toMatchObject({ state: "pending", attempts: 0, dueAt: 0 });
    expect((await find(delivered))?.state).toBe("delivered");
    expect((await find(test))?.state).toBe("exhausted");
    expect((await find(other))?.state).toBe("exhausted");
  });

  it("makes thousands of exhausted events due, some hundred in one statement", async () => {
    const applicationId = await create();
    await database.run((orm) =>
      orm.run(sql`WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < 1201)
        INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
        SELECT ${applicationId}, 'evt_' || printf('%026d', n), 'badge:created', '{}', 'exhausted', 0, 1 FROM place`),
    );
    expect(await replayExhausted(database, applicationId)).toMatchObject({ replayed: 1201 });
    const rows = await database.run((orm) =>
      orm.select().from(history).where(eq(history.applicationId, applicationId)),
    );
    expect(rows).toMatchObject([{ action: "event:replayed" }]);
  });

  it("is refused without a URL and while the endpoint is held", async () => {
    const silent = await create(null);
    await expect(replayEvent(database, await record(silent, 1, { state: "held" }))).rejects.toThrow("no webhook URL");
    await expect(replayExhausted(database, silent)).rejects.toThrow("no webhook URL");
    const failing = await create();
    await hold(failing);
    await expect(replayExhausted(database, failing)).rejects.toThrow("are held");
    const held = await record(failing, 1, { state: "held" });
    await expect(replayEvent(database, held)).rejects.toThrow(`webhook test ${failing} (a 2xx response does it)`);
    expect((await find(held))?.state).toBe("held");
    await expect(replayEvent(database, newEventId(1))).rejects.toThrow("There is no event");
    await expect(replayEvent(database, "evt_1")).rejects.toThrow("is not an event ID");
  });

  it("quotes a URL in the command that it prints, so that the command works when it is pasted", async () => {
    const applicationId = await create("https://app.example.com/hooks?a=1&b=2");
    await hold(applicationId);
    await expect(replayExhausted(database, applicationId)).rejects.toThrow(
      `application update ${applicationId} --webhook-url 'https://app.example.com/hooks?a=1&b=2'`,
    );
  });
});

describe("webhook show (contract section 10)", () => {
  const payload = (id: string, second: number, data: object) =>
    JSON.stringify({ id, event: "badge:created", createdAt: `1970-01-01T00:00:0${second}.000Z`, data });

  it("shows the fields of webhook list, the payload, the badge, the last response and the next attempt", async () => {
    const applicationId = await create();
    const dueAt = Date.now() + 3_600_000;
    const data = { id: "1000000007", userId: "alice", invitationId: "inv_spent" };
    const last = { lastStatus: 503, lastOutcome: "answered", lastResponse: "busy", lastMilliseconds: 12 };
    const id = await record(applicationId, 1, { attempts: 3, dueAt, ...last, payload: payload("evt_x", 1, data) });
    const listed = (await listEvents(database, applicationId, { state: undefined, limit: 1 }))[0];
    expect(await showEvent(database, id)).toEqual({
      ...listed,
      applicationId,
      lastOutcome: "answered",
      lastResponse: "busy",
      lastMilliseconds: 12,
      nextAttemptAt: new Date(dueAt).toISOString(),
      obstacle: null,
      badgeNumber: "1000000007",
      payload: { id: "evt_x", event: "badge:created", createdAt: "1970-01-01T00:00:01.000Z", data },
    });
  });

  it("shows what a due event waits for, and that a finished one gets no attempt", async () => {
    const show = async (applicationId: ApplicationId, changes: Partial<EventRow>) => {
      const { nextAttemptAt, obstacle } = await showEvent(database, await record(applicationId, 1, changes));
      return { nextAttemptAt, obstacle };
    };
    const atOnce = { nextAttemptAt: "1970-01-01T00:00:01.000Z", obstacle: null };
    const working = await create();
    expect(await show(working, { dueAt: 0 })).toEqual(atOnce);
    expect(await show(working, { dueAt: -1 })).toEqual(atOnce);
    for (const state of ["delivered", "exhausted", "held"] as const) {
      expect(await show(working, { state })).toEqual({ nextAttemptAt: null, obstacle: null });
    }
    const held = await create();
    await hold(held);
    expect(await show(held, { state: "held" })).toEqual({ nextAttemptAt: null, obstacle: "held-endpoint" });
    expect(await show(held, { dueAt: 0 })).toEqual({ nextAttemptAt: null, obstacle: "held-endpoint" });
    expect(await show(held, { dueAt: -1, event: "webhook:test" })).toEqual(atOnce);
    expect(await show(await create(null), {})).toEqual({ nextAttemptAt: null, obstacle: "no-url" });
    await setDisabled(database, working, true);
    expect(await show(working, {})).toEqual({ nextAttemptAt: null, obstacle: "disabled" });
    expect(await show(working, { state: "delivered" })).toEqual({ nextAttemptAt: null, obstacle: null });
  });

  it("shows no badge for a test event", async () => {
    const id = await record(await create(), 1, { event: "webhook:test", payload: payload("evt_x", 1, {}) });
    expect(await showEvent(database, id)).toMatchObject({ badgeNumber: null });
  });
});

describe("webhook test (contract section 10)", () => {
  /** Does what the service does with a test event: sends it and records how that went. */
  async function answerTest(applicationId: ApplicationId, result: Partial<EventRow>): Promise<string> {
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

  it("waits for the service and reports the response", async () => {
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

  it("reports a failure", async () => {
    const applicationId = await create();
    const answer = { lastStatus: null, lastOutcome: "timeout", lastMilliseconds: 15_000, lastResponse: null };
    const [result] = await Promise.all([
      testEndpoint(database, applicationId, 5000),
      answerTest(applicationId, { state: "exhausted", attempts: 1, ...answer }),
    ]);
    expect(result).toMatchObject({ delivered: false, status: null, outcome: "timeout" });
  });

  it("withdraws the event when the service does not send it", async () => {
    const applicationId = await create();
    const notes: string[] = [];
    const testing = testEndpoint(database, applicationId, 1500, (line) => notes.push(line));
    await expect(testing).rejects.toThrow("the service must be running");
    expect(notes).toEqual(["Waiting for the service, which sends it within a minute."]);
    expect(await listEvents(database, applicationId, { state: undefined, limit: 1 })).toEqual([]);
  });

  it("says that an application is disabled, whose events wait (contract section 8)", async () => {
    const applicationId = await create();
    await setDisabled(database, applicationId, true);
    await expect(testEndpoint(database, applicationId, 0)).rejects.toThrow(`application enable ${applicationId}`);
    expect(await listEvents(database, applicationId, { state: undefined, limit: 1 })).toEqual([]);
  });

  it("needs a URL", async () => {
    await expect(testEndpoint(database, await create(null), 0)).rejects.toThrow("no webhook URL");
  });
});
