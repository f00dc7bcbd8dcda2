import { createContext } from "./context.ts";
import { app } from "./http/app.ts";
import { sweep } from "./sweep.ts";
import { consumeDeadLetters, consumeWakeUps } from "./webhooks/consumer.ts";

export { Allocator } from "./allocator/allocator.ts";
export { WebhookSender } from "./webhooks/sender.ts";

/** Part of the names of the dead-letter queues in wrangler.toml. */
const DEAD_LETTERS = "-dead";

/** The entry points. */
export default {
  fetch: app.fetch,

  async queue(batch, env, execution) {
    const context = createContext(env, (work) => execution.waitUntil(work));
    if (batch.queue.includes(DEAD_LETTERS)) await consumeDeadLetters(context, batch);
    else await consumeWakeUps(context, batch);
  },

  async scheduled(_controller, env, execution) {
    await sweep(createContext(env, (work) => execution.waitUntil(work)));
  },
} satisfies ExportedHandler<Env>;
