import { createExecutionContext, createMessageBatch, getQueueResult } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import worker from "../../src/worker/index.ts";
import type { DeliveryMessage } from "../../src/worker/webhooks/delivery-message.ts";

export function messagesOf(bodies: readonly unknown[]): MessageBatch {
  const messages = bodies.map((body, place) => ({ id: String(place), timestamp: new Date(), attempts: 1, body }));
  return createMessageBatch("badge-webhooks", messages);
}

/** What the queue's consumer does with a message. */
export async function consume(body: unknown): Promise<{ outcome: string; retryMessages: unknown[] }> {
  const batch = messagesOf([body]);
  const execution = createExecutionContext();
  await worker.queue(batch, env, execution);
  const { outcome, retryMessages } = await getQueueResult(batch, execution);
  return { outcome, retryMessages };
}

/** A message that is done, and does not come again. */
export const DONE = { outcome: "ok", retryMessages: [] };

/** A queue that does with each message what a test says, instead of bringing it to the consumer. */
export function queueThat<Body = unknown>(
  takes: (body: Body, delaySeconds: number) => Promise<void> | void,
): Queue<Body> {
  const metrics = { backlogCount: 0, backlogBytes: 0 };
  return {
    metrics: async () => metrics,
    async send(body, { delaySeconds = 0 } = {}) {
      await takes(body, delaySeconds);
      return { metadata: { metrics } };
    },
    async sendBatch(messages) {
      for (const { body, delaySeconds = 0 } of messages) await takes(body, delaySeconds);
      return { metadata: { metrics } };
    },
  };
}

/** A queue that keeps what it is given: the test decides when a message comes, how often, or never. */
export function keptQueue() {
  const sent: { body: DeliveryMessage; delaySeconds: number }[] = [];
  const queue = queueThat<DeliveryMessage>((body, delaySeconds) => void sent.push({ body, delaySeconds }));
  return { ...queue, sent };
}

/** From now on the applications' objects send to this queue, until mocks are restored: they share the test's binding. */
export function objectsSendTo(queue: Queue): void {
  vi.spyOn(env.WEBHOOKS, "sendBatch").mockImplementation((messages, options) => queue.sendBatch(messages, options));
}
