import { createContext } from "./context.ts";
import { findHome, homesOf } from "./homes.ts";
import { app } from "./http/app.ts";
import { callHomeClock } from "./scheduling/client.ts";
import { takeWakeMessages, wakeRecipients } from "./scheduling/wake-messages.ts";
import { type ContextOf, consumeDeadLetters, consumeWakeUps } from "./webhooks/consumer.ts";

export { Allocator } from "./allocator/allocator.ts";
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
    const { recipients, others } = takeWakeMessages(batch);
    // A command may take long, and webhook events do not wait for it.
    if (recipients.length > 0) execution.waitUntil(wakeRecipients(env, at, recipients));
    if (others.messages.length === 0) return;
    if (batch.queue.includes(DEAD_LETTERS)) await consumeDeadLetters(at, others);
    else await consumeWakeUps(at, others);
  },

  async scheduled(_controller, env) {
    await Promise.all(homesOf(env).map((home) => callHomeClock(env, home)));
  },
} satisfies ExportedHandler<Env>;
