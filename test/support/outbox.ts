import { and, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { vi } from "vitest";
import { deviceId, eventIdPrefix, newEventId } from "../../src/shared/identifiers.ts";
import { application, webhookEvent } from "../../src/shared/schema.ts";
import { issueBadge } from "../../src/worker/badges/issue.ts";
import type { Context } from "../../src/worker/context.ts";
import { sweepHome } from "../../src/worker/scheduling/sweep.ts";
import { consumeDeliveries } from "../../src/worker/webhooks/consumer.ts";
import { bindObject } from "./allocator.ts";
import { createApplication, type TestApplication } from "./application.ts";
import { testContext } from "./context.ts";
import { homeDatabase, runSql } from "./home.ts";
import { keptQueue, messagesOf } from "./queue.ts";

const HOUR = 3_600_000;

/** Not kept: files share this module, and their applications live in different homes. */
const orm = () => drizzle(homeDatabase());

type EventRow = typeof webhookEvent.$inferSelect;

/** An application and its events, with the clock, the queue and the deferred work in the test's hands. */
export class Outbox {
  readonly application: TestApplication;
  /** What the service works with; parts of it may be put in the place of others. */
  context: Context;
  readonly queue = keptQueue();
  now = Date.now();
  readonly #deferred: Promise<unknown>[];
  #users = 0;

  private constructor(made: TestApplication) {
    this.application = made;
    const { context, deferred } = testContext({ queue: this.queue, now: () => this.now });
    this.context = context;
    this.#deferred = deferred;
  }

  static async open(columns: Parameters<typeof createApplication>[0]): Promise<Outbox> {
    const outbox = new Outbox(await createApplication(columns));
    await bindObject(outbox.application, () => ({ WEBHOOKS: outbox.queue }));
    // Another test of this file may have come to a later time.
    await setUntriedFrom(outbox.now - HOUR);
    return outbox;
  }

  /** A new user device gets a badge, a millisecond after what came before. @returns the ID of its event */
  async issue(userId = `user-${++this.#users}`, metadata: string | null = null): Promise<string> {
    this.now++;
    const { context, application } = this;
    const known = await context.applicationCache.reload(context.db, application.id, this.now);
    if (known === undefined) throw new Error("no application");
    const request = {
      ...{ device: deviceId.parse(`device of ${userId}`), userId, metadata, isVerified: true, isServer: false },
      ...{ invitationToken: null, keyThumbprint: null, bookmark: null },
    };
    // The application's object goes by the same clock.
    const clock = vi.spyOn(Date, "now").mockImplementation(() => this.now);
    const issued = await issueBadge(context, known, request, { actor: { kind: "device" } }).finally(() =>
      clock.mockRestore(),
    );
    await this.settle();
    const events = await this.events();
    const event = events.find(({ payload }) => JSON.parse(payload).data.id === String(issued.number));
    return event?.id ?? "";
  }

  /** What `webhook test` of the administration script puts into the outbox. */
  async addTestEvent(): Promise<string> {
    const id = newEventId(this.now);
    const createdAt = new Date(this.now).toISOString();
    const payload = JSON.stringify({ id, event: "webhook:test", createdAt, data: {} });
    const row = { id, event: "webhook:test", payload, state: "pending", dueAt: -1, createdAt: this.now } as const;
    await orm()
      .insert(webhookEvent)
      .values({ applicationId: this.application.id, ...row });
    return id;
  }

  /** The queue brings messages for these events. Returns when the consumer does; what it deferred goes on. */
  consume(...eventIds: string[]): Promise<void> {
    const { id: applicationId } = this.application;
    return consumeDeliveries(() => this.context, messagesOf(eventIds.map((eventId) => ({ applicationId, eventId }))));
  }

  async settle(): Promise<void> {
    while (this.#deferred.length > 0) await Promise.all(this.#deferred.splice(0));
  }

  async deliver(...eventIds: string[]): Promise<void> {
    await this.consume(...eventIds);
    await this.settle();
  }

  /** Runs the sweep. @returns the events of this application that it enqueued, in order */
  async sweep(): Promise<string[]> {
    const before = this.queue.sent.length;
    await sweepHome(this.context, { get: () => null, set: () => {} });
    const ours = this.queue.sent.splice(before).filter(({ body }) => body.applicationId === this.application.id);
    this.queue.sent.push(...ours);
    return ours.map(({ body }) => body.eventId);
  }

  /** Oldest first. */
  events(): Promise<EventRow[]> {
    return orm()
      .select()
      .from(webhookEvent)
      .where(eq(webhookEvent.applicationId, this.application.id))
      .orderBy(webhookEvent.id);
  }

  async event(eventId: string): Promise<EventRow> {
    const row = (await this.events()).find(({ id }) => id === eventId);
    if (row === undefined) throw new Error(`no event ${eventId}`);
    return row;
  }

  async dueTime(eventId: string): Promise<number> {
    const { dueAt } = await this.event(eventId);
    if (dueAt === null) throw new Error(`${eventId} has no due time`);
    return dueAt;
  }

  async change(eventId: string, columns: Partial<EventRow>): Promise<void> {
    await orm()
      .update(webhookEvent)
      .set(columns)
      .where(and(eq(webhookEvent.applicationId, this.application.id), eq(webhookEvent.id, eventId)));
  }

  async heldAt(): Promise<number | null> {
    const [row] = await orm().select().from(application).where(eq(application.id, this.application.id));
    if (row === undefined) throw new Error("no application");
    return row.webhookHeldAt;
  }

  /** What `application update --webhook-url` of the administration script does to the endpoint; null removes it. */
  async setUrl(webhookUrl: string | null): Promise<void> {
    await orm()
      .update(application)
      .set({ webhookUrl, webhookHeldAt: null })
      .where(eq(application.id, this.application.id));
  }
}

/** Pending events that were made before this moment have due times. */
export const setUntriedFrom = (moment: number): Promise<D1Result> =>
  runSql(
    `INSERT INTO heartbeat (id, sequence, ticked_at, untried_from) VALUES (1, 1, 0, ?1)
      ON CONFLICT (id) DO UPDATE SET untried_from = ?1`,
    eventIdPrefix(moment),
  );
