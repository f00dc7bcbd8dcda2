import { env } from "cloudflare:workers";
import { vi } from "vitest";

/** A queue that does with each message what a test says, instead of bringing it to the consumer. */
export function queueThat(takes: (message: unknown) => Promise<void> | void): Queue {
  const metrics = { backlogCount: 0, backlogBytes: 0 };
  return {
    metrics: async () => metrics,
    async send(message) {
      await takes(message);
      return { metadata: { metrics } };
    },
    async sendBatch(messages) {
      for (const { body } of messages) await takes(body);
      return { metadata: { metrics } };
    },
  };
}

/** From now on the applications' objects send to this queue, until mocks are restored: they share the test's binding. */
export function objectsSendTo(queue: Queue): void {
  vi.spyOn(env.WEBHOOKS, "sendBatch").mockImplementation((messages, options) => queue.sendBatch(messages, options));
}
