import { createContext } from "./context.ts";
import { findHome, type Home, homesOf } from "./homes.ts";
import { app } from "./http/app.ts";
import { sweep } from "./sweep.ts";
import { type ContextOf, consumeDeadLetters, consumeWakeUps } from "./webhooks/consumer.ts";

export { Allocator } from "./allocator/allocator.ts";
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
    if (batch.queue.includes(DEAD_LETTERS)) await consumeDeadLetters(at, batch);
    else await consumeWakeUps(at, batch);
  },

  async scheduled(_controller, env, execution) {
    const at = (home: Home) => createContext(env, (work) => execution.waitUntil(work), home);
    const [first, ...others] = homesOf(env);
    await sweep([at(first), ...others.map(at)]);
  },
} satisfies ExportedHandler<Env>;
