import { createExecutionContext, createMessageBatch, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import worker from "../../src/worker/index.ts";
import { Database } from "../../src/worker/storage/database.ts";
import {
  deleteChunk,
  deleteOldest,
  findApplications,
  oldEvents,
  oldInvitations,
} from "../../src/worker/storage/retention.ts";
import { sweep } from "../support/sweep.ts";
import { passHours } from "../badges/support.ts";
import { aroundObjectD1, bindObject, withLedger } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { billOf } from "../support/bill.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { testContext } from "../support/context.ts";
import { type AroundTrip, aroundD1, type Statement } from "../support/d1.ts";
import { byEffort } from "../support/effort.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { type Answer, serverHeaders } from "../support/http.ts";
import { queueThat } from "../support/queue.ts";

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

/**
 * Applications and sealing keys are few; of reconciliations only the open ones are read, by an index of those. `ending` and
 * `ended` are the invitations that the statement itself has found by an index.
 */
const READ_WHOLE =
  /^SCAN (application|sealing_key|reconciliation USING INDEX reconciliation_open|ending|ended|\(subquery)/;

const openReconciliation = (id: string, restored: string, step: string) =>
  homeDatabase()
    .prepare(
      "INSERT INTO reconciliation (application_id, restored, step, requested_at, through) VALUES (?, ?, ?, 0, 0)",
    )
    .bind(id, restored, step);

describe("every statement finds its rows by an index", () => {
  it("in requests and in the object", async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges" });
    const statements = new Map<string, Statement>();
    const caller = await createCaller(application, keepIn(statements));
    await Promise.all([1, 2, 3].map(() => caller.badge("device", { userId: "alice" })));
    await caller.badge("device", { userId: "alice", metadata: { os: "iOS" } });
    await caller.sign("device");
    for (const path of ["/v1/badges", "/v1/users/alice/badges"]) await caller.page(path);
    const invited = await caller.invite(60);
    await caller.badge("device", { userId: "alice", invitationToken: invited.body.id });
    await caller.revoke(await caller.invite(60));
    await withLedger(application, (_, { sql }) => sql.exec("UPDATE lease SET confirmed = 0").toArray());
    await passHours(application, 1);
    expect(statements.size).toBeGreaterThan(15);
    // A co-routine over the few keys of one application, found by an index.
    expect(await scansOf(statements)).toEqual(["SCAN application_signingKeys", "SCAN ended"]);
  });

  it("in the steps of a badge, in blocks, in claims that end one, and in the feed", async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges" });
    const statements = new Map<string, Statement>();
    const caller = await createCaller(application, keepIn(statements));
    const { body } = await caller.badge("device", { userId: "alice" });
    const badge = `/v1/badges/${body.badgeId}`;
    await caller.server("GET", badge);
    for (const step of ["suspend", "resume"]) await caller.server("PATCH", `${badge}/${step}`);
    await caller.server("PATCH", badge, { expiresAt: new Date(Date.now() + 60_000).toISOString() });
    await caller.server("PATCH", `${badge}/revoke`);
    for (const path of ["/v1/users/alice/block", "/v1/users/alice/unblock"]) await caller.server("PATCH", path);
    await caller.server("GET", "/v1/users/alice");
    const first = await caller.server("GET", "/v1/changes?per_page=1");
    await caller.server("GET", `/v1/changes?cursor=${first.headers.get("pagination-cursor")}`);
    expect(statements.size).toBeGreaterThan(12);
    for (const scan of await scansOf(statements)) expect(scan).toMatch(READ_WHOLE);
  });

  it("in the sweep and in deliveries, but for the applications and the sealing keys, which are few", async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges" });
    const statements = new Map<string, Statement>();
    const caller = await createCaller(application, keepIn(statements));
    await caller.badge("device", { userId: "alice" });
    await caller.invite(60);
    await caller.revoke(await caller.invite(60));
    statements.clear();
    await caller.consume();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 120_000 });
    await caller.sweep();
    vi.useRealTimers();
    expect(statements.size).toBeGreaterThan(6);
    for (const scan of await scansOf(statements)) expect(scan).toMatch(READ_WHOLE);
  });

  it("in the pages of invitations and events, and in the daily retention scan", async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges" });
    const statements = new Map<string, Statement>();
    const caller = await createCaller(application, keepIn(statements));
    for (const state of ["", "&state=pending", "&state=claimed"])
      await caller.page(`/v1/invitations?per_page=1${state}`);
    for (const state of ["", "&state=delivered", "&state=exhausted", "&state=held"]) {
      await caller.page(`/v1/events?per_page=1${state}`);
    }
    const db = new Database(aroundD1(homeDatabase(), keepIn(statements)));
    const kinds = [
      { deletable: oldEvents({ delivered: "evt_1", undelivered: "evt_0" }), from: "evt_0", to: "evt_1" },
      { deletable: oldInvitations(1000), from: 0, to: 1000 },
    ];
    for (const { deletable, from, to } of kinds) {
      await deleteOldest(db, deletable, 20);
      await findApplications(db, deletable, { from, to });
      await deleteChunk(db, deletable, { applicationId: application.id, from, to }, 500);
    }
    expect(statements.size).toBeGreaterThan(12);
    for (const scan of await scansOf(statements)) expect(scan).toMatch(READ_WHOLE);
  });

  it("in rare cases: a full range, an invitation that was not swept, failures, a dead letter, re-sealing", async () => {
    const [application, other] = [
      await createApplication({ size: 1, webhookUrl: "https://hooks.example/badges" }),
      await createApplication({ webhookUrl: "https://hooks.example/badges" }),
    ];
    vi.spyOn(console, "error").mockImplementation(() => {});
    const statements = new Map<string, Statement>();
    const full = await createCaller(application, keepIn(statements));
    const caller = await createCaller(other, keepIn(statements));
    await full.invite(60);
    const invited = await caller.invite(60);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 120_000 });
    await full.badge("device", { userId: "alice" });
    await caller.refused(caller.badge("device", { userId: "bob", invitationToken: invited.body.id }));
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response(null, { status: 500 }));
    await full.consume();
    await full.consume("badge-webhooks-dead");
    await homeDatabase().batch(
      [1, 2].map((version) =>
        homeDatabase()
          .prepare("INSERT INTO sealing_key VALUES (?1, ?2, 0)")
          .bind(version, env.TEST_SEALING_PUBLIC_KEYS[version - 1] ?? ""),
      ),
    );
    await homeDatabase().batch([
      openReconciliation(application.id, "d1", "badges"),
      openReconciliation(other.id, "object", "leases"),
    ]);
    await caller.sweep();
    vi.useRealTimers();
    const seen = [...statements.keys()].join("\n");
    for (const part of [
      /AND \+application_id = \?3/,
      /application_id = \?2/,
      /SET state = 'expired', ended_at = expires_at_time\s+WHERE digest = \?1/,
      /UPDATE application SET\s+webhook_failing_since/,
      /"last_outcome" = \?/,
      /UPDATE application_secret SET sealed/,
      /UPDATE signing_key SET sealed/,
      /UPDATE application SET sealed_device_key/,
      /update "reconciliation" set/,
      /from "invitation" where \("invitation"."digest" IN/,
      /from "badge" where \("badge"."number" > \?/,
    ]) {
      expect(seen).toMatch(part);
    }
    for (const scan of await scansOf(statements)) expect(scan).toMatch(READ_WHOLE);
  });

  function keepIn(statements: Map<string, Statement>): AroundTrip {
    return (sent, send) => {
      for (const statement of sent) statements.set(statement.sql, statement);
      return send();
    };
  }

  /** What SQLite says it reads from end to end, but for parameters and for what another step has found. */
  async function scansOf(statements: ReadonlyMap<string, Statement>): Promise<string[]> {
    const details = z.array(z.object({ detail: z.string() }));
    const plans = await homeDatabase().batch(
      [...statements.values()].map(({ sql, parameters }) =>
        homeDatabase()
          .prepare(`EXPLAIN QUERY PLAN ${sql}`)
          .bind(...parameters),
      ),
    );
    const steps = plans.flatMap(({ results }) => details.parse(results)).map(({ detail }) => detail);
    const scans = steps.filter((step) => /\bSCAN\b/.test(step) && !/ VIRTUAL TABLE |^SCAN \(subquery-/.test(step));
    return [...new Set(scans)];
  }
});

/** Badges of one application. */
const MOST = byEffort(100_000, 1_000_000);
const format = (number: number): string => new Intl.NumberFormat("en").format(number);

describe("no request costs more when there are more badges", () => {
  it(`reads and writes as many rows with ${format(MOST)} badges as with one thousand`, {
    timeout: 120_000,
  }, async () => {
    const application = await createApplication();
    await fill(application, 0, 1000);
    const few = await measure(application, "few");
    await fill(application, 2000, 100_000);
    expect(await measure(application, "many")).toEqual(few);
    // The measurements' own badges are in the gaps.
    for (let from = 100_000; from < MOST; from += 100_000) await fill(application, from + 1000, from + 100_000);
    expect(await measure(application, "most")).toEqual(few);
    // A row and its four indexes; without a webhook URL there is no event. Newer metadata is a row and its change number.
    expect(few).toMatchObject({ issue: { rowsWritten: 5 }, metadata: { rowsWritten: 2 } });
    expect(few).toMatchObject({ existing: { rowsWritten: 0 }, sign: { rowsWritten: 0 } });
    // One more than the page shows tells whether there is a next one.
    expect(few).toMatchObject({ page: { rowsRead: 11 }, "user page": { rowsRead: 11 } });
    expect(Object.fromEntries(Object.entries(few).map(([kind, { rowsRead }]) => [kind, rowsRead]))).toEqual({
      issue: 19,
      existing: 7,
      metadata: 9,
      sign: 5,
      page: 11,
      "user page": 11,
      invite: 6,
      claim: 28,
      suspend: 18,
      block: 27,
      changes: 14,
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
