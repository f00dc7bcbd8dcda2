import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { Allocator } from "../../src/worker/allocator/allocator.ts";
import worker from "../../src/worker/index.ts";
import { ENTRY } from "../allocator/support.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { aroundAllocators, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { aroundD1, type Statement } from "../support/d1.ts";
import { isAbout } from "../support/faults.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { serverHeaders } from "../support/http.ts";
import { objectsSendTo, queueThat } from "../support/queue.ts";
import { until } from "../support/until.ts";
import { expectDifferent, inParallel, requestQuietly, WEBHOOK_URL } from "./support.ts";

useQuietLog();

/** What a request may ask of the platform, each a network round trip. */
interface Trips {
  /** To D1, from the Worker. */
  worker: number;
  /** To the application's object. */
  object: number;
  /** To D1, from the object. */
  fromObject: number;
  /** To the queue. */
  queue: number;
}

/** Counts what a call costs. The application is known to this isolate already, unless the call is its first. */
async function countTrips(application: TestApplication, call: (bindings: Partial<Env>) => Promise<unknown>) {
  const trips: Trips = { worker: 0, object: 0, fromObject: 0, queue: 0 };
  await aroundObjectD1(application, () => (_, send) => {
    trips.fromObject++;
    return send();
  });
  const WEBHOOKS = queueThat(() => {
    trips.queue++;
  });
  objectsSendTo(WEBHOOKS);
  await call({
    DEVICE_LIMIT: UNLIMITED,
    CLIENT_IP_LIMIT: UNLIMITED,
    WEBHOOKS,
    ...bindDatabase(
      aroundD1(homeDatabase(), (_, send) => {
        trips.worker++;
        return send();
      }),
    ),
    ALLOCATOR: aroundAllocators((_, go) => {
      trips.object++;
      return go();
    }),
  });
  return trips;
}

function badgeRequest({ id }: { id: string }, udid: string, body: unknown): Request {
  const init = { method: "POST", headers: { applicationid: id, udid }, body: JSON.stringify(body) };
  return new Request("https://badges.example/v1/badge", init);
}

const pageRequest = (application: TestApplication, path: string) =>
  new Request(`https://badges.example${path}`, { headers: serverHeaders(application) });

/** An application that this isolate knows, with a badge of alice on `device`. */
async function createKnownApplication(): Promise<TestApplication> {
  const application = await createApplication({ webhookUrl: WEBHOOK_URL });
  await requestQuietly(application, "device", { userId: "alice", metadata: { os: "iOS" } });
  return application;
}

const NONE: Trips = { worker: 0, object: 0, fromObject: 0, queue: 0 };

/** What each call costs in all: test/storage/costs.test.ts. */
describe("the round trips of a request", () => {
  it("new metadata, or a login of another user of the device, takes one call of the object, which writes once and does not read D1", async () => {
    const application = await createKnownApplication();
    const ask = (body: unknown) =>
      countTrips(application, (bindings) => callWith(bindings, badgeRequest(application, "device", body)));
    const written: Trips = { worker: 1, object: 1, fromObject: 1, queue: 0 };
    expect(await ask({ userId: "alice", metadata: { os: "Android" } })).toEqual(written);
    await requestQuietly(application, "device", { userId: "bob" });
    expect(await ask({ userId: "alice" })).toEqual(written);
    expect(await ask({ userId: "alice" })).toEqual({ ...NONE, worker: 1 });
  });

  it("a call makes one more round trip to D1 when the application is not cached", async () => {
    const application = await createApplication();
    const trips = await countTrips(application, (bindings) =>
      callWith(bindings, badgeRequest(application, "device", { userId: "alice" })),
    );
    // The object, too, is called for the first time: it reads D1's head, then its rows.
    expect(trips).toEqual({ worker: 2, object: 1, fromObject: 3, queue: 0 });
    const other = await createApplication();
    const cold = await countTrips(other, (bindings) => callWith(bindings, pageRequest(other, "/v1/badges")));
    expect(cold).toEqual({ ...NONE, worker: 2 });
  });

  it("a malformed request makes no round trip", async () => {
    const application = await createKnownApplication();
    const refused = [badgeRequest(application, "device", {}), badgeRequest({ id: "unknown" }, "device", {})];
    for (const request of refused) {
      expect(await countTrips(application, (bindings) => callWith(bindings, request))).toEqual(NONE);
    }
  });
});

describe("work that the response does not depend on is not awaited", () => {
  it("a call gets its response before the queue has accepted the wake-up", async () => {
    const application = await createKnownApplication();
    const taken = Promise.withResolvers<void>();
    objectsSendTo(queueThat(() => taken.promise));
    const bindings = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED };
    const execution = createExecutionContext();
    const request = badgeRequest(application, "new", { userId: "bob" });
    const answer = await worker.fetch(request, { ...env, ...bindings }, execution);
    expect(answer.status).toBe(201);
    taken.resolve();
    await waitOnExecutionContext(execution);
  });

  it("badges that are requested during a write are written in one batch, and each event is enqueued once", async () => {
    const application = await createKnownApplication();
    const count = 30;
    const batches: number[] = [];
    const messages: unknown[] = [];
    const WEBHOOKS = queueThat((message) => {
      messages.push(message);
    });
    const calls = vi.spyOn(Allocator.prototype, "call");
    await aroundObjectD1(application, () => async (statements, send) => {
      if (!isAbout(statements, ENTRY)) return send();
      batches.push(countBadges(statements.find((statement) => isAbout([statement], "INSERT INTO badge"))));
      // The first write lasts until all others have come.
      while (batches.length === 1 && calls.mock.calls.length < count) await scheduler.wait(1);
      return send();
    });
    const ask = (udid: string) => requestQuietly(application, udid, { userId: "bob" }, { WEBHOOKS });
    const alone = ask("alone");
    await until(() => expect(batches).toEqual([1]));
    const answers = [...(await inParallel(count - 1, (place) => ask(`many-${place}`))), await alone];
    expectDifferent(answers, application);
    expect(count).toBeLessThanOrEqual(100);
    calls.mockRestore();
    expect(batches).toEqual([1, count - 1]);
    expect(messages).toHaveLength(count);
    expect(new Set(messages.map((message) => JSON.stringify(message))).size).toBe(count);
  });

  /** How many badges the JSON parameter of a batch holds. */
  function countBadges(statement: Statement | undefined): number {
    const rows = statement?.parameters.find((parameter) => String(parameter).startsWith("[["));
    const badges: unknown = JSON.parse(String(rows));
    return Array.isArray(badges) ? badges.length : 0;
  }
});
