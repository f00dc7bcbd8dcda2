import { isTickMessage } from "../shared/tick-message.ts";
import { createContext } from "./context.ts";
import { isFirstOfHour, warnIfHomeFills } from "./home-size.ts";
import { findHome, homesOf } from "./homes.ts";
import { app } from "./http/app.ts";
import { callHomeClock } from "./scheduling/client.ts";
import { type ContextOf, consumeDeadLetters, consumeWakeUps } from "./webhooks/consumer.ts";

export { Allocator } from "./allocator/allocator.ts";
export { Live } from "./live/live.ts";
export { HomeClock } from "./scheduling/home-clock.ts";
export { WebhookSender } from "./webhooks/sender.ts";

/** Part of the names of the dead-letter queues in wrangler.toml. */
const DEAD_LETTERS = "-dead";

/** The entry points. */
export default {
  fetch: app.fetch,

  async queue(batch, env, execution) {
    const at: ContextOf = (number) => {
      const home = findHome(env, number);
      return home && createContext(env, (work) => execution.waitUntil(work), home);
    };
    const messages = batch.messages.filter(({ body }) => !isTickMessage(body));
    const isTicking = messages.length < batch.messages.length;
    const others = isTicking ? withMessages(batch, messages) : batch;
    await Promise.all([
      isTicking ? tickEveryHome(env) : undefined,
      batch.queue.includes(DEAD_LETTERS) ? consumeDeadLetters(at, others) : consumeWakeUps(at, others),
    ]);
  },

  async scheduled({ scheduledTime }, env) {
    const measured = isFirstOfHour(scheduledTime) ? homesOf(env) : [];
    await Promise.all([tickEveryHome(env), ...measured.map(warnIfHomeFills)]);
  },
} satisfies ExportedHandler<Env>;

async function tickEveryHome(env: Env): Promise<void> {
  await Promise.all(homesOf(env).map((home) => callHomeClock(env, home)));
}

/** A batch with some of its messages. */
const withMessages = (batch: MessageBatch, messages: readonly Message[]): MessageBatch => ({
  queue: batch.queue,
  metadata: batch.metadata,
  messages,
  retryAll: (options) => batch.retryAll(options),
  ackAll: () => batch.ackAll(),
});
