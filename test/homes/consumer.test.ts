import { createExecutionContext, getQueueResult } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { newApplicationId, newEventId } from "../../src/shared/identifiers.ts";
import { createContext } from "../../src/worker/context.ts";
import { type ContextOf, consumeDeadLetters, consumeDeliveries } from "../../src/worker/webhooks/consumer.ts";
import { createApplication } from "../support/application.ts";
import { type AroundTrip, aroundD1 } from "../support/d1.ts";
import { isAbout } from "../support/faults.ts";
import { boundHome } from "../support/home.ts";
import { log } from "../support/log.ts";
import { consume, DONE, messagesOf } from "../support/queue.ts";
import { until } from "../support/until.ts";

interface EnqueuedEvent {
  applicationId: string;
  eventId: string;
}

async function dueEvent(home: number): Promise<EnqueuedEvent> {
  const { id: applicationId } = await createApplication({ home, webhookUrl: "https://hooks.example/badges" });
  const eventId = newEventId(Date.now());
  await boundHome(home)
    .d1.prepare(
      `INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
       VALUES (?1, ?2, 'badge:created', '{}', 'pending', 0, 0)`,
    )
    .bind(applicationId, eventId)
    .run();
  return { applicationId, eventId };
}

/** The consumer's two homes. Every webhook is answered with 204. */
class Consumer {
  readonly sent: string[] = [];
  readonly leases = { 1: 0, 2: 0 };
  readonly #deferred: Promise<unknown>[] = [];
  readonly #around: (home: 1 | 2) => AroundTrip;

  constructor(around: (home: 1 | 2) => AroundTrip = () => (_, send) => send()) {
    this.#around = around;
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      this.sent.push(new Request(input, init).headers.get("webhook-id") ?? "");
      return new Response(null, { status: 204 });
    });
  }

  readonly contextOf: ContextOf = (number) => {
    if (number !== 1 && number !== 2) return undefined;
    const d1 = aroundD1(boundHome(number).d1, (statements, send) => {
      if (isAbout(statements, "UPDATE webhook_event SET lease_until")) this.leases[number]++;
      return this.#around(number)(statements, send);
    });
    return createContext(env, (work) => this.#deferred.push(work), { ...boundHome(number), d1 });
  };

  async settle(): Promise<void> {
    while (this.#deferred.length > 0) await Promise.all(this.#deferred.splice(0));
  }
}

async function statesOf(home: number): Promise<Map<unknown, unknown>> {
  const { results } = await boundHome(home).d1.prepare("SELECT id, state FROM webhook_event").all();
  return new Map(results.map(({ id, state }) => [id, state]));
}

/** IDs of the messages that the queue brings again. */
async function retried(batch: MessageBatch): Promise<string[]> {
  const { retryMessages } = await getQueueResult(batch, createExecutionContext());
  return retryMessages.map(({ msgId }) => msgId);
}

// The first, so that there is no event that the tick sends.
it("a message makes the scheduler of every home tick, and is no webhook event; another message does not (contract sections 17 and 25)", async () => {
  const tickedAt = (home: number) =>
    boundHome(home).d1.prepare("SELECT ticked_at FROM heartbeat WHERE id = 1").first("ticked_at");
  for (const body of [{}, { kind: "" }]) await consume(body);
  expect([await tickedAt(1), await tickedAt(2)]).toEqual([null, null]);
  // As the script of any release sends it.
  expect(await consume({ kind: "tick" })).toEqual(DONE);
  expect([await tickedAt(1), await tickedAt(2)]).toEqual([expect.any(Number), expect.any(Number)]);
});

describe("a batch of the queue with events of several homes (contract sections 8 and 17)", () => {
  it("a batch is leased with one call in each home, and each event is recorded in its own", async () => {
    const events = [await dueEvent(1), await dueEvent(2), await dueEvent(1), await dueEvent(2)];
    const consumer = new Consumer();
    const batch = messagesOf(events);
    await consumeDeliveries(consumer.contextOf, batch);
    await consumer.settle();
    expect(consumer.leases).toEqual({ 1: 1, 2: 1 });
    expect(consumer.sent.toSorted()).toEqual(events.map(({ eventId }) => eventId).toSorted());
    const states = [await statesOf(1), await statesOf(2)];
    for (const [index, { eventId }] of events.entries()) expect(states[index % 2]?.get(eventId)).toBe("delivered");
    expect(await retried(batch)).toEqual([]);
  });

  it("events of one home are sent and those of a failed home are redelivered, in either queue", async () => {
    const [one, two] = [await dueEvent(1), await dueEvent(2)];
    const down: AroundTrip = () => Promise.reject(new Error("D1 DB is overloaded"));
    const consumer = new Consumer((home) => (home === 1 ? down : (_, send) => send()));
    const [batch, dead] = [messagesOf([one, two]), messagesOf([one, two])];
    await consumeDeliveries(consumer.contextOf, batch);
    await consumer.settle();
    expect(consumer.sent).toEqual([two.eventId]);
    expect(await retried(batch)).toEqual(["0"]);
    await consumeDeadLetters(consumer.contextOf, dead);
    expect(await retried(dead)).toEqual(["0"]);
    expect((await statesOf(2)).get(two.eventId)).toBe("delivered");
    expect((await statesOf(1)).get(one.eventId)).toBe("pending");
  });

  it("events of one home are sent while another's D1 hangs", async () => {
    const [one, two] = [await dueEvent(1), await dueEvent(2)];
    const hanging = Promise.withResolvers<void>();
    const consumer = new Consumer((home) => async (_, send) => {
      if (home === 1) await hanging.promise;
      return send();
    });
    const consumed = consumeDeliveries(consumer.contextOf, messagesOf([one, two]));
    await until(() => expect(consumer.sent).toEqual([two.eventId]));
    hanging.resolve();
    await consumed;
    await consumer.settle();
    expect(consumer.sent).toEqual([two.eventId, one.eventId]);
  });

  it("paced events wait for the least that their messages ask for, and an event that need not wait is sent at once", async () => {
    const wait = vi.spyOn(scheduler, "wait");
    // An allocator of another test may end its turn meanwhile, which is a wait of 0 ms.
    const waits = () =>
      wait.mock.calls.map(([milliseconds]) => milliseconds).filter((milliseconds) => milliseconds > 0);
    const paced = [
      { ...(await dueEvent(1)), afterMilliseconds: 40 },
      { ...(await dueEvent(1)), afterMilliseconds: 20 },
    ];
    const consumer = new Consumer();
    await consumeDeliveries(consumer.contextOf, messagesOf(paced));
    expect(waits()).toEqual([20]);
    await consumeDeliveries(consumer.contextOf, messagesOf([...paced, await dueEvent(1)]));
    expect(waits()).toEqual([20]);
    await consumer.settle();
    expect(consumer.sent).toHaveLength(3);
  });

  it("messages for a home that is not bound are dropped and logged", async () => {
    const event = await dueEvent(2);
    const consumer = new Consumer();
    const batch = messagesOf([{ applicationId: newApplicationId(9), eventId: "evt_9" }, event]);
    await consumeDeliveries(consumer.contextOf, batch);
    await consumer.settle();
    expect(consumer.sent).toEqual([event.eventId]);
    expect(await retried(batch)).toEqual([]);
    const lines = log.lines().filter((line) => line.event === "home-not-bound");
    expect(lines).toEqual([{ level: "error", event: "home-not-bound", home: 9, messages: 1 }]);
  });
});
