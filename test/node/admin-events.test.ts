import { setTimeout as wait } from "node:timers/promises";
import { and, eq, sql } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { setDisabled } from "../../src/admin/application/commands.ts";
import { listEvents } from "../../src/admin/webhook/commands.ts";
import { replayEvent, replayExhausted } from "../../src/admin/webhook/replay.ts";
import { showEvent } from "../../src/admin/webhook/show.ts";
import { testEndpoint } from "../../src/admin/webhook/test.ts";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { newEventId } from "../../src/shared/identifiers.ts";
import { application, webhookEvent } from "../../src/shared/schema.ts";
import { until } from "../support/until.ts";
import { localHomes } from "./support/script.ts";

const { homes, database, admin, create: createApplication, refusal } = await localHomes();

const session = {
  ...{ homes, output: { result() {}, note() {} }, wake: async () => {} },
  reopen: async () => ({
    homes,
    database,
    backend: { environment: "production" },
    wake: async () => {},
    async close() {},
  }),
};

const create = async (webhookUrl = "https://app.example.com/hooks"): Promise<ApplicationId> =>
  (await createApplication("--webhook-url", webhookUrl)).applicationId;

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

const list = (applicationId: ApplicationId, state?: "held" | "pending", limit = 100) =>
  listEvents(database, applicationId, { state, limit });

describe("webhook list (contract section 10)", () => {
  it("webhook list prints the newest events first, with the contract's keys, filtered by application, state and --limit", async () => {
    const applicationId = await create();
    await record(await create(), 1);
    const held = await record(applicationId, 1, { state: "held" });
    const sent = { state: "delivered", attempts: 2, lastStatus: 204, deliveredAt: 9000 } as const;
    const delivered = await record(applicationId, 2, sent);
    const all = await list(applicationId);
    expect(all).toEqual([
      {
        ...{ id: delivered, event: "badge:created", state: "delivered", attempts: 2, lastStatus: 204 },
        ...{ createdAt: "1970-01-01T00:00:02.000Z", deliveredAt: "1970-01-01T00:00:09.000Z" },
      },
      {
        ...{ id: held, event: "badge:created", state: "held", attempts: 0, lastStatus: null },
        ...{ createdAt: "1970-01-01T00:00:01.000Z", deliveredAt: null },
      },
    ]);
    expect(await list(applicationId, "held")).toEqual([all[1]]);
    expect(await list(applicationId, undefined, 1)).toEqual([all[0]]);
  });

  it("webhook list --state pending includes untried events and those that wait for a retry", async () => {
    const applicationId = await create();
    const untried = await record(applicationId, 1, { dueAt: null });
    await record(applicationId, 2, { state: "delivered", dueAt: null });
    const retried = await record(applicationId, 3, { attempts: 1 });
    expect((await list(applicationId, "pending")).map(({ id }) => id)).toEqual([retried, untried]);
    expect((await list(applicationId, "pending", 1)).map(({ id }) => id)).toEqual([retried]);
  });
});

describe("webhook replay (contract section 10)", () => {
  it.each(["delivered", "exhausted", "held", "pending"] as const)(
    "makes a %s event due at once and before all others, with all its attempts before it, also when it is run twice",
    async (state) => {
      const applicationId = await create();
      await record(applicationId, 1, { dueAt: 0 });
      const dueAt = Date.now() + 10 * 3_600_000;
      const id = await record(applicationId, 2, { state, attempts: 14, deliveredAt: 5, dueAt });
      const replayed = { id, applicationId, disabled: false };
      const previousAttemptAt = state === "pending" ? new Date(dueAt).toISOString() : null;
      expect(await replayEvent(database, id)).toEqual({ ...replayed, previousState: state, previousAttemptAt });
      const again = { ...replayed, previousState: "pending", previousAttemptAt: null };
      expect(await replayEvent(database, id)).toEqual(again);
      expect(await find(id)).toMatchObject({ state: "pending", attempts: 0, dueAt: -1, deliveredAt: null });
    },
  );

  it("webhook replay --all-exhausted makes all exhausted events of an application due at once, oldest first, even thousands", async () => {
    const applicationId = await create();
    await database.run((orm) =>
      orm.run(sql`WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < 1200)
        INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
        SELECT ${applicationId}, 'evt_' || printf('%026d', n), 'badge:created', '{}', 'exhausted', 0, 1 FROM place`),
    );
    const ids = [1, 1, 2].map((second) => record(applicationId, second, { state: "exhausted", attempts: 14 }));
    await Promise.all(ids);
    const others = [
      await record(await create(), 1, { state: "exhausted" }),
      await record(applicationId, 3, { event: "webhook:test", state: "exhausted", attempts: 1 }),
      await record(applicationId, 4, { state: "delivered" }),
    ];
    const before = await Promise.all(others.map(find));
    const replayed = { applicationId, disabled: false };
    expect(await replayExhausted(database, applicationId)).toEqual({ ...replayed, replayed: 1203 });
    expect(await replayExhausted(database, applicationId)).toEqual({ ...replayed, replayed: 0 });
    for (const id of await Promise.all(ids))
      expect(await find(id)).toMatchObject({ state: "pending", attempts: 0, dueAt: 0 });
    expect(await Promise.all(others.map(find))).toEqual(before);
  });

  it("webhook replay is refused without a URL and while the endpoint is held, and names a command that can be pasted", async () => {
    await expect(replayExhausted(database, await create(""))).rejects.toThrow("no webhook URL");
    const failing = await create("https://app.example.com/hooks?a=1&b=2");
    await hold(failing);
    await expect(replayExhausted(database, failing)).rejects.toThrow(
      `application update ${failing} --webhook-url 'https://app.example.com/hooks?a=1&b=2'`,
    );
    const held = await record(failing, 1, { state: "held" });
    await expect(replayEvent(database, held)).rejects.toThrow(`webhook test ${failing} (a 2xx response does it)`);
    expect((await find(held))?.state).toBe("held");
    expect(await refusal("webhook", "replay", newEventId(1))).toContain("There is no event");
    expect(await refusal("webhook", "show", "evt_1")).toContain("is not an event ID");
  });

  it("webhook replay prints the event's earlier due time, and that a disabled application's event waits", async () => {
    const applicationId = await create();
    const id = await record(applicationId, 1, { dueAt: Date.UTC(2099, 5, 7, 8, 9, 10, 999) });
    const replay = async () => (await admin("webhook", "replay", id)).stdout;
    expect(await replay()).toContain(" was to be tried at 2099-06-07 08:09:10Z and is due now. ");
    expect(await replay()).toContain(" was due already. ");
    await setDisabled(database, applicationId, true);
    expect(await replay()).toContain(`nothing is sent before npm run -s admin -- application enable ${applicationId}.`);
    expect(await replayEvent(database, id)).toMatchObject({ disabled: true });
    expect(await replayExhausted(database, applicationId)).toMatchObject({ disabled: true });
  });
});

describe("webhook show (contract section 10)", () => {
  const payload = (data: object) =>
    JSON.stringify({ id: "evt_x", event: "badge:created", createdAt: "1970-01-01T00:00:01.000Z", data });

  it("webhook show prints the fields of webhook list, the payload, the badge, the last response and the next attempt", async () => {
    const applicationId = await create();
    const data = { id: "1000000007", userId: "\u001b[31mred", invitationId: "inv_spent" };
    const last = { lastOutcome: "answered", lastResponse: "busy", lastMilliseconds: 12 } as const;
    const dueAt = Date.UTC(2099, 5, 7, 8, 9, 10, 999);
    const id = await record(applicationId, 1, { attempts: 3, lastStatus: 503, dueAt, ...last, payload: payload(data) });
    const [listed] = await list(applicationId);
    expect(await showEvent(database, id)).toEqual({
      ...listed,
      ...{ applicationId, ...last, nextAttemptAt: "2099-06-07T08:09:10.999Z", obstacle: null },
      badgeNumber: "1000000007",
      payload: { id: "evt_x", event: "badge:created", createdAt: "1970-01-01T00:00:01.000Z", data },
    });
    const { stdout } = await admin("webhook", "show", id);
    for (const line of [
      /^ {2}Event ID +evt_/m,
      /^ {2}Badge number +1000000007$/m,
      /^ {2}Last response +busy$/m,
      /^ {2}Next attempt +2099-06-07 08:09:10Z$/m,
      /^ +"userId": "\\u001b\[31mred"/m,
    ]) {
      expect(stdout).toMatch(line);
    }
  });

  it("webhook show says what a due event waits for, and that a finished one gets no attempt", async () => {
    const show = async (applicationId: ApplicationId, changes: Partial<EventRow>) => {
      const { nextAttemptAt, obstacle } = await showEvent(database, await record(applicationId, 1, changes));
      return [nextAttemptAt, obstacle];
    };
    const atOnce = ["1970-01-01T00:00:01.000Z", null];
    const working = await create();
    for (const dueAt of [0, null]) expect(await show(working, { dueAt })).toEqual(atOnce);
    expect(await show(working, { state: "exhausted" })).toEqual([null, null]);
    const held = await create();
    await hold(held);
    expect(await show(held, { dueAt: 0 })).toEqual([null, "held-endpoint"]);
    expect(await show(held, { dueAt: -1, event: "webhook:test" })).toEqual(atOnce);
    expect(await show(await create(""), {})).toEqual([null, "no-url"]);
    await setDisabled(database, working, true);
    expect(await show(working, {})).toEqual([null, "disabled"]);
  });
});

describe("webhook test (contract section 10)", () => {
  /** Does what the service does with a test event: sends it and records how that went. */
  async function answerTest(applicationId: ApplicationId, result: Partial<EventRow>): Promise<string> {
    for (;;) {
      const isTest = and(eq(webhookEvent.applicationId, applicationId), eq(webhookEvent.event, "webhook:test"));
      const [event] = await database.run((orm) => orm.select().from(webhookEvent).where(isTest));
      if (event !== undefined) {
        await database.run((orm) =>
          orm
            .update(webhookEvent)
            .set({ ...result, attempts: 1 })
            .where(isTest),
        );
        return event.payload;
      }
      await wait(20);
    }
  }

  it.each([
    { state: "delivered", status: 200, outcome: "answered", milliseconds: 12, response: "thanks" },
    { state: "exhausted", status: null, outcome: "timeout", milliseconds: 15_000, response: null },
  ] as const)("webhook test waits for the service and reports $outcome", async ({ state, ...reported }) => {
    const applicationId = await create();
    const { status: lastStatus, outcome: lastOutcome, milliseconds: lastMilliseconds } = reported;
    const [result, sent] = await Promise.all([
      testEndpoint(session, applicationId, 5000),
      answerTest(applicationId, { state, lastStatus, lastOutcome, lastMilliseconds, lastResponse: reported.response }),
    ]);
    const eventId = expect.stringMatching(/^evt_/);
    const url = "https://app.example.com/hooks";
    expect(result).toEqual({ eventId, url, delivered: state === "delivered", ...reported });
    const createdAt = expect.stringMatching(/Z$/);
    expect(JSON.parse(sent)).toEqual({ id: result.eventId, event: "webhook:test", createdAt, data: {} });
  });

  it("webhook test withdraws the event when the service does not send it in time, or on Ctrl-C, and needs a URL and an enabled application", async () => {
    const applicationId = await create();
    await expect(testEndpoint(session, applicationId, 100)).rejects.toThrow("the service must be running");
    await setDisabled(database, applicationId, true);
    await expect(testEndpoint(session, applicationId, 0)).rejects.toThrow(`application enable ${applicationId}`);
    expect(await list(applicationId)).toEqual([]);
    await setDisabled(database, applicationId, false);
    const interrupted = testEndpoint(session, applicationId, 60_000);
    await until(async () => expect(await list(applicationId)).toHaveLength(1));
    process.emit("SIGINT");
    await expect(interrupted).rejects.toThrow("Interrupted");
    expect(await list(applicationId)).toEqual([]);
    await expect(testEndpoint(session, await create(""), 0)).rejects.toThrow("no webhook URL");
  });
});
