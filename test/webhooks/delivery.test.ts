import { hmac } from "@noble/hashes/hmac.js";
import { sha1 } from "@noble/hashes/legacy.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { Webhook } from "standardwebhooks";
import { describe, expect, it, vi } from "vitest";
import { toBase64 } from "../../src/shared/sealing.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { consumeDeliveries } from "../../src/worker/webhooks/consumer.ts";
import { addSecret, createApplication } from "../support/application.ts";
import { type AroundTrip, aroundD1, countedD1 } from "../support/d1.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { requestBadge } from "../support/http.ts";
import { log } from "../support/log.ts";
import type { Outbox } from "../support/outbox.ts";
import { messagesOf } from "../support/queue.ts";
import { answer, hangs, type Received, type Receiver } from "../support/receivers.ts";
import { badgeRows, eventRows } from "../support/rows.ts";
import { until } from "../support/until.ts";
import { useOutboxes } from "./support.ts";

const { open, receiver } = useOutboxes();
/** An event that is being sent is kept from everybody else for 60 to 70 seconds. */
const [LEAST_LEASE, MOST_LEASE] = [60_000, 70_000];
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What a careful receiver does: the published Standard Webhooks verifier, and HMACs of another library. */
function expectSigned(received: Received, secrets: readonly string[]): void {
  const { headers, bytes, text } = received;
  const content = utf8(`${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${text}`);
  const entries = secrets.map((secret) => `v1,${toBase64(hmac(sha256, utf8(secret), content))}`);
  expect(headers.get("webhook-signature")).toBe(entries.join(" "));
  expect(headers.get("signature")).toBe(toBase64(hmac(sha1, utf8(secrets[0] ?? ""), bytes)));
  for (const secret of secrets) {
    const trio = Object.fromEntries([...headers].filter(([name]) => name.startsWith("webhook-")));
    expect(new Webhook(toBase64(utf8(secret))).verify(text, trio)).toEqual(JSON.parse(text));
  }
}

it("a new badge's webhook has the stored bytes, with both signatures in the contract's headers and no others (contract section 8)", async () => {
  const endpoint = receiver();
  const application = await createApplication({ webhookUrl: endpoint.url });
  const body = { userId: "Zoë 🚪", metadata: { os: "iOS", osVersion: "27" } };
  const { badgeId } = (await requestBadge(application, "device", body)).body;
  await until(() => expect(endpoint.received).toHaveLength(1));
  const [received] = endpoint.received;
  const [row] = await eventRows(application);
  const [badge] = await badgeRows(application);
  if (received === undefined || row === undefined) throw new Error("no event");
  expect(received.text).toBe(row.payload);
  const { createdAt } = JSON.parse(row.payload);
  const event = { id: row.id, event: "badge:created", createdAt, data: { id: badgeId, ...body } };
  expect(received.text).toBe(JSON.stringify(event));
  expect(createdAt).toBe(new Date(badge?.issuedAt ?? 0).toISOString());
  expect(row.id).toMatch(/^evt_/);
  expect(badge?.eventId).toBe(row.id);
  expect([...received.headers.keys()]).toEqual([
    "content-type",
    "signature",
    "user-agent",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
  ]);
  expect(received.headers.get("content-type")).toBe("application/json");
  expect(received.headers.get("user-agent")).toBe("badge-distribution-service/1.0");
  expect(received.headers.get("webhook-id")).toBe(row.id);
  expectSigned(received, [application.secret]);
  await until(async () => {
    expect((await eventRows(application))[0]).toMatchObject({
      ...{ state: "delivered", attempts: 1, lastStatus: 204, lastResponse: "" },
    });
  });
});

/** A new event is delivered, and signed by these secrets. */
async function expectDelivery(outbox: Outbox, { received }: Receiver, secrets: readonly string[]): Promise<void> {
  await outbox.deliver(await outbox.issue());
  const webhook = received.at(-1);
  if (webhook === undefined) throw new Error("nothing came");
  expectSigned(webhook, secrets);
}

describe("a receiver can change from one secret to the next while both are valid (contract sections 8 and 9)", () => {
  it.each(["added", "previous"] as const)(
    "the current secret makes Signature and comes first in webhook-signature, the %s one second",
    async (role) => {
      const { endpoint, outbox } = await open();
      const other = await addSecret(outbox.application, role);
      await expectDelivery(outbox, endpoint, [outbox.application.secret, other]);
    },
  );

  it("and a secret that was copied from another application's row signs nothing, though this isolate has opened it", async () => {
    const { endpoint, outbox } = await open();
    const { outbox: other } = await open();
    for (const each of [outbox, other]) await each.deliver(await each.issue());
    const sealedOf = (id: string) =>
      homeDatabase()
        .prepare("SELECT sealed FROM application_secret WHERE application_id = ?")
        .bind(id)
        .first<string>("sealed");
    const setSealed = (sealed: string | null) =>
      runSql("UPDATE application_secret SET sealed = ?2 WHERE application_id = ?1", outbox.application.id, sealed);
    const own = await sealedOf(outbox.application.id);
    await setSealed(await sealedOf(other.application.id));
    const event = await outbox.issue();
    await outbox.deliver(event);
    expect(endpoint.received).toHaveLength(1);
    expect((await outbox.event(event)).attempts, "the receiver is not to blame").toBe(0);
    await setSealed(own);
    outbox.now += MOST_LEASE;
    await outbox.deliver(event);
    expect(endpoint.received).toHaveLength(2);
    for (const received of endpoint.received) expectSigned(received, [outbox.application.secret]);
  });
});

describe("an event is sent until one attempt succeeds (contract section 8: at least once)", () => {
  it("with the same ID and bytes on every attempt, each signed with the time of its attempt", async () => {
    const { endpoint, outbox } = await open((_, attempt) => answer(attempt < 4 ? 500 : 200));
    // Almost a second later: a timestamp is never ahead of the attempt.
    outbox.now = Math.floor(outbox.now / 1000) * 1000 + 998;
    const event = await outbox.issue("Zoë", '{"os":"ünïcode"}');
    const seconds: string[] = [];
    for (let attempt = 1; attempt <= 4; attempt++) {
      seconds.push(String(Math.floor(outbox.now / 1000)));
      await outbox.deliver(event);
      if (attempt < 4) outbox.now = await outbox.dueTime(event);
    }
    expect(endpoint.received).toHaveLength(4);
    expect(new Set(endpoint.received.map(({ text }) => text)).size).toBe(1);
    expect(new Set(endpoint.received.map(({ headers }) => headers.get("webhook-id")))).toEqual(new Set([event]));
    expect(endpoint.received.map(({ headers }) => headers.get("webhook-timestamp"))).toEqual(seconds);
    // The verifier refuses what is five minutes ahead of its own clock, so only the first two are its business.
    for (const received of endpoint.received.slice(0, 2)) expectSigned(received, [outbox.application.secret]);
    expect(await outbox.event(event)).toMatchObject({ state: "delivered", attempts: 4 });
  });

  it("and not again after that, however often and in whatever order messages come", async () => {
    const { endpoint, outbox } = await open();
    const events = [await outbox.issue(), await outbox.issue(), await outbox.issue()];
    await outbox.deliver(...events.toReversed(), ...events, ...events);
    for (const _ of [1, 2]) await outbox.deliver(...events);
    outbox.now += 90 * 24 * 3_600_000;
    await outbox.deliver(...events);
    expect(await outbox.sweep()).toEqual([]);
    expect(endpoint.received.map(({ headers }) => headers.get("webhook-id")).sort()).toEqual(events.toSorted());
    for (const row of await outbox.events()) expect(row).toMatchObject({ state: "delivered", attempts: 1 });
  });

  it("even if the queue takes no messages, and the badge is issued", async () => {
    const { outbox } = await open();
    vi.spyOn(outbox.queue, "sendBatch").mockRejectedValue(new Error("Queue is overloaded"));
    const event = await outbox.issue();
    expect(log.lines()).toContainEqual(expect.objectContaining({ event: "enqueue-failed" }));
    vi.restoreAllMocks();
    outbox.now += 60_000;
    expect(await outbox.sweep()).toEqual([event]);
  });

  it("and a message that does not parse is dropped without affecting the others of its batch", async () => {
    const { endpoint, outbox } = await open();
    const ours = { applicationId: outbox.application.id, eventId: await outbox.issue() };
    await consumeDeliveries(
      () => outbox.context,
      messagesOf([null, "text", { applicationId: 1 }, ours, { ...ours, eventId: "evt_x" }]),
    );
    await outbox.settle();
    expect(endpoint.received).toHaveLength(1);
    const dropped = log.lines().filter((line) => line.event === "malformed-message");
    expect(dropped.map(({ messageId }) => messageId)).toEqual(["0", "1", "2"]);
  });
});

describe("a process that dies loses no event (contract section 8)", () => {
  /** The consumer dies where `around` throws: no error of D1's that is worth another try. */
  async function dying(around: AroundTrip, dueAt: number | null = null) {
    const { endpoint, outbox } = await open();
    const event = await outbox.issue();
    await outbox.change(event, { dueAt });
    const whole = outbox.context;
    outbox.context = { ...whole, db: new Database(aroundD1(homeDatabase(), around)) };
    await outbox.consume(event).catch(() => undefined);
    await outbox.settle();
    outbox.context = whole;
    return { endpoint, outbox, event };
  }
  const isRecord = (sql: string | undefined): boolean => sql?.includes('"last_milliseconds" = ') === true;

  const AGES = [
    ["nobody has tried", null],
    ["is due again", 0],
  ] as const;

  it("between the lease and the request: the event is sent when the lease has expired, not before", async () => {
    const { endpoint, outbox, event } = await dying(async (_, send) => {
      await send();
      throw new Error("dead");
    }, 0);
    expect(endpoint.received).toHaveLength(0);
    outbox.now += LEAST_LEASE - 1;
    await outbox.deliver(event);
    expect(await outbox.sweep()).toEqual([]);
    expect(endpoint.received).toHaveLength(0);
    outbox.now += MOST_LEASE - LEAST_LEASE;
    expect(await outbox.sweep()).toEqual([event]);
    await outbox.deliver(event);
    expect(endpoint.received).toHaveLength(1);
    expect(await outbox.event(event)).toMatchObject({ state: "delivered", attempts: 1 });
  });

  it.each(AGES)(
    "between the request and its record: an event that %s is sent again with the same ID",
    async (_, dueAt) => {
      const { endpoint, outbox, event } = await dying(
        ([statement], send) => (isRecord(statement?.sql) ? Promise.reject(new Error("dead")) : send()),
        dueAt,
      );
      expect(endpoint.received).toHaveLength(1);
      expect(await outbox.event(event)).toMatchObject({ state: "pending", attempts: 0 });
      outbox.now += MOST_LEASE;
      expect(await outbox.sweep()).toEqual([event]);
      await outbox.deliver(event);
      expect(endpoint.received.map(({ headers }) => headers.get("webhook-id"))).toEqual([event, event]);
      expect(await outbox.event(event)).toMatchObject({ state: "delivered", attempts: 1 });
    },
  );

  it.each([
    ["the process died", "dead", 0],
    ["D1's response was lost, so that the record is repeated", "Network connection lost", null],
  ])(
    "after the record, when %s (%s, due at %s), the event is sent once and counted once",
    async (_, message, dueAt) => {
      let records = 0;
      const { endpoint, outbox, event } = await dying(async ([statement], send) => {
        const result = await send();
        if (isRecord(statement?.sql) && ++records === 1) throw new Error(message);
        return result;
      }, dueAt);
      outbox.now += MOST_LEASE;
      expect(await outbox.sweep()).toEqual([]);
      await outbox.deliver(event);
      expect(endpoint.received).toHaveLength(1);
      expect(await outbox.event(event)).toMatchObject({ state: "delivered", attempts: 1 });
    },
  );

  it("a late result changes nothing that was recorded meanwhile, unless it is a success", async () => {
    const late: ((response: Response) => void)[] = [];
    const { endpoint, outbox } = await open((_, attempt) =>
      attempt <= 2 ? new Promise<Response>((resolve) => late.push(resolve)) : answer(500),
    );
    let records = 0;
    const d1 = aroundD1(homeDatabase(), async ([statement], send) => {
      const result = await send();
      if (isRecord(statement?.sql)) records++;
      return result;
    });
    outbox.context = { ...outbox.context, db: new Database(d1) };
    const event = await outbox.issue();
    const start = outbox.now;
    for (const attempt of [0, 1, 2]) {
      outbox.now = start + attempt * MOST_LEASE;
      await outbox.consume(event);
      await until(() => expect(endpoint.received).toHaveLength(attempt + 1));
    }
    await until(() => expect(records).toBe(1));
    expect(await outbox.event(event)).toMatchObject({ attempts: 1, lastStatus: 500 });
    late[0]?.(answer(503));
    await until(() => expect(records).toBe(2));
    expect(await outbox.event(event)).toMatchObject({ state: "pending", attempts: 1, lastStatus: 500 });
    late[1]?.(answer(200));
    await outbox.settle();
    expect(await outbox.event(event)).toMatchObject({ state: "delivered", lastStatus: 200 });
  });
});

describe("a slow receiver delays no other application's events (contract section 8)", () => {
  it("the consumer finishes after leasing, and no event's first attempt waits for another's", async () => {
    const giveUp = new AbortController();
    vi.spyOn(AbortSignal, "timeout").mockReturnValue(giveUp.signal);
    const { endpoint: hanging, outbox: slow } = await open(hangs);
    const { endpoint: healthy, outbox: quick } = await open();
    const wakeUps = [];
    for (const outbox of [slow, slow, slow, slow, quick]) {
      wakeUps.push({ applicationId: outbox.application.id, eventId: await outbox.issue() });
    }
    const counted = countedD1(homeDatabase());
    await consumeDeliveries(() => ({ ...slow.context, db: new Database(counted.d1) }), messagesOf(wakeUps));
    expect(counted.trips).toBe(1);
    await until(() => expect([hanging.received.length, healthy.received.length]).toEqual([4, 1]));
    await until(async () => expect(await quick.events()).toMatchObject([{ state: "delivered" }]));
    expect((await slow.events()).map(({ attempts }) => attempts)).toEqual([0, 0, 0, 0]);
    giveUp.abort();
    await slow.settle();
    expect(await slow.events()).toMatchObject(Array.from({ length: 4 }, () => ({ lastOutcome: "timeout" })));
    // The lease, and one record for each endpoint.
    expect(counted.trips).toBe(3);
  });

  it("a slow receiver delays nobody in the queue, which brings its next batches while the attempts of one hang", async () => {
    let isHanging = true;
    // Each attempt looks for itself: it is in an invocation of the queue.
    const hanging = receiver(async () => {
      while (isHanging) await scheduler.wait(20);
      return answer(500);
    });
    const healthy = receiver();
    const slow = await createApplication({ webhookUrl: hanging.url });
    const quick = await createApplication({ webhookUrl: healthy.url });
    // More than two batches.
    for (let device = 0; device < 11; device++) await requestBadge(slow, `device ${device}`, { userId: "slow" });
    await until(() => expect(hanging.received).toHaveLength(11));
    await requestBadge(quick, "device", { userId: "quick" });
    await until(async () => expect(await eventRows(quick)).toMatchObject([{ state: "delivered" }]));
    expect((await eventRows(slow)).map(({ attempts }) => attempts)).toEqual(Array(11).fill(0));
    isHanging = false;
    await until(async () => {
      expect((await eventRows(slow)).map(({ attempts }) => attempts)).toEqual(Array(11).fill(1));
    });
  });
});
