import { createExecutionContext, createMessageBatch, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import worker from "../../src/worker/index.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { aroundObjectD1, bindObject } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { billOf } from "../support/bill.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { testContext } from "../support/context.ts";
import { type AroundTrip, aroundD1 } from "../support/d1.ts";
import { byEffort } from "../support/effort.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { type Answer, serverHeaders } from "../support/http.ts";
import { queueThat } from "../support/queue.ts";
import { sweep } from "../support/sweep.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response(null, { status: 204 }));
});

/** Calls of one application whose trips to D1, of the Worker and of the object, go through `around`. */
async function createCaller(application: TestApplication, around: AroundTrip) {
  const messages: unknown[] = [];
  const d1 = aroundD1(homeDatabase(), around);
  const bindings = {
    ...bindDatabase(d1),
    DEVICE_LIMIT: UNLIMITED,
    CLIENT_IP_LIMIT: UNLIMITED,
    WEBHOOKS: queueThat((message) => {
      messages.push(message);
    }),
  };
  await aroundObjectD1(application, () => around);
  await bindObject(application, () => ({ WEBHOOKS: bindings.WEBHOOKS }));
  const send = async (method: string, path: string, headers: Record<string, string>, body?: unknown) => {
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const answer = await callWith(bindings, new Request(`https://badges.example${path}`, init));
    expect(answer.status, `${method} ${path} ${JSON.stringify(answer.body)}`).toBeLessThan(300);
    return answer;
  };
  const device = (udid: string) => ({ applicationid: application.id, udid });
  return {
    badge: (udid: string, body: unknown) => send("POST", "/v1/badge", device(udid), body),
    sign: (udid: string) => send("POST", "/v1/badge/sign", device(udid), { base64: "aGVsbG8=" }),
    page: (path: string) => send("GET", path, serverHeaders(application)),
    invite: (seconds: number) =>
      send("POST", "/v1/invitation", device("server"), {
        expiresAt: new Date(Date.now() + seconds * 1000).toISOString(),
      }),
    revoke: ({ body }: Answer) =>
      send("PATCH", `/v1/invitation/${body.id}/revoke`, { ...serverHeaders(application), udid: "server" }),
    server: (method: string, path: string, body?: unknown) => send(method, path, serverHeaders(application), body),
    /** A call that is to be refused. */
    refused: async (call: Promise<Answer>) => expect(await call.catch(() => "refused")).toBe("refused"),
    sweep: () => sweep([testContext({ db: new Database(d1), queue: bindings.WEBHOOKS }).context]),
    /** Brings the queue's messages to the consumer. */
    async consume(queue = "badge-webhooks"): Promise<void> {
      const batch = messages
        .splice(0)
        .map((body, id) => ({ id: String(id), timestamp: new Date(), attempts: 1, body }));
      const execution = createExecutionContext();
      await worker.queue(createMessageBatch(queue, batch), { ...env, ...bindings }, execution);
      await waitOnExecutionContext(execution);
    },
  };
}

/** Badges of one application. */
const [MANY, MOST] = byEffort([20_000, 20_000], [100_000, 1_000_000]);
const format = (number: number): string => new Intl.NumberFormat("en").format(number);

describe("no request costs more when there are more badges", () => {
  it(`reads and writes as many rows with ${format(MOST)} badges as with one thousand`, {
    timeout: 120_000,
  }, async () => {
    const application = await createApplication();
    await fill(application, 0, 1000);
    const few = await measure(application, "few");
    await fill(application, 2000, MANY);
    expect(await measure(application, "many")).toEqual(few);
    // The measurements' own badges are in the gaps.
    for (let from = MANY; from < MOST; from += MANY) await fill(application, from + 1000, from + MANY);
    expect(await measure(application, "most")).toEqual(few);
    // A row, its four indexes and the position; without a webhook URL there is no event. Newer metadata is a row, its change
    // number and the position.
    expect(few).toMatchObject({ issue: { rowsWritten: 6 }, metadata: { rowsWritten: 3 } });
    expect(few).toMatchObject({ existing: { rowsWritten: 0 }, sign: { rowsWritten: 0 } });
    // One more than the page shows tells whether there is a next one.
    expect(few).toMatchObject({ page: { rowsRead: 11 }, "user page": { rowsRead: 11 } });
    expect(Object.fromEntries(Object.entries(few).map(([kind, { rowsRead }]) => [kind, rowsRead]))).toEqual({
      issue: 12,
      existing: 7,
      metadata: 23,
      sign: 5,
      page: 11,
      "user page": 11,
      invite: 11,
      claim: 31,
      suspend: 17,
      block: 20,
      changes: 12,
    });
  });

  /** Rows read and written by each kind of call, as D1 bills them. */
  type Cost = Record<string, { rowsRead: number; rowsWritten: number }>;

  /**
   * Issued badges of the application, outside its range. Their devices come after every real one: a search by device
   * reads one row more, if there is one, to see that it is done.
   */
  async function fill({ id }: { id: string }, from: number, to: number): Promise<void> {
    await homeDatabase()
      .prepare(
        `WITH RECURSIVE place (n) AS (SELECT CAST(?2 AS INTEGER) UNION ALL SELECT n + 1 FROM place WHERE n + 1 < ?3)
       INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id, position, turn,
         issued_at)
       SELECT 5000000000 + n, ?1, '~' || n, 'user-' || (n % 50), '{"os":"iOS"}', 1, 'evt_' || n, n + 1, 1, 1 FROM place`,
      )
      .bind(id, from, to)
      .run();
  }

  async function measure(application: TestApplication, name: string): Promise<Cost> {
    let spent = { rowsRead: 0, rowsWritten: 0 };
    const caller = await createCaller(application, async (statements, send) => {
      const result = await send();
      const { rowsRead, rowsWritten } = await billOf(statements, result);
      spent = { rowsRead: spent.rowsRead + rowsRead, rowsWritten: spent.rowsWritten + rowsWritten };
      return result;
    });
    const cost: Cost = {};
    const take = async (kind: string, call: () => Promise<unknown>) => {
      spent = { rowsRead: 0, rowsWritten: 0 };
      await call();
      cost[kind] = spent;
    };
    await caller.page("/v1/badges?per_page=1");
    // The object has begun its list of changes, and a page of them is full.
    for (let place = 0; place < 12; place++) await caller.badge(`${name} before ${place}`, { userId: "dave" });
    await take("issue", () => caller.badge(name, { userId: "alice" }));
    await take("existing", () => caller.badge(name, { userId: "alice" }));
    await take("metadata", () => caller.badge(name, { userId: "alice", metadata: { os: "iOS" } }));
    await take("sign", () => caller.sign(name));
    await take("page", () => caller.page("/v1/badges?per_page=10"));
    await take("user page", () => caller.page("/v1/users/user-7/badges?per_page=10"));
    let invited: Answer | undefined;
    await take("invite", async () => {
      invited = await caller.invite(600);
    });
    await take("claim", () => caller.badge(`${name}-2`, { userId: "bob", invitationToken: invited?.body.id }));
    const { body } = await caller.badge(`${name}-3`, { userId: `carol ${name}` });
    await take("suspend", () => caller.server("PATCH", `/v1/badges/${body.badgeId}/suspend`));
    await take("block", () => caller.server("PATCH", `/v1/users/carol ${name}/block`));
    await caller.server("PATCH", `/v1/users/carol ${name}/unblock`);
    const { headers } = await caller.server("GET", "/v1/changes?per_page=1");
    const cursor = headers.get("pagination-cursor");
    await take("changes", () => caller.server("GET", `/v1/changes?per_page=10&cursor=${cursor}`));
    return cost;
  }

  it(`costs the same beside ${format(MOST)} old events`, {
    timeout: 120_000,
  }, async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges" });
    await fill(application, 3_000_000, 3_001_000);
    const costs = await measure(application, "before");
    await homeDatabase()
      .prepare(
        `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ?2)
       INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
       SELECT ?1, printf('evt_0%025d', n), 'badge:created', '{}', iif(n % 10, 'delivered', 'exhausted'), 0, n FROM place`,
      )
      .bind(application.id, MOST)
      .run();
    expect(await measure(application, "after")).toEqual(costs);
  });
});
