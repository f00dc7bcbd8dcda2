import { createContext } from "./context.ts";
import { findHome, homesOf } from "./homes.ts";
import { app } from "./http/app.ts";
import { callHomeClock } from "./scheduling/client.ts";
import { type ContextOf, consumeDeadLetters, consumeDeliveries } from "./webhooks/consumer.ts";

export { Allocator } from "./allocator/allocator.ts";
export { HomeClock } from "./scheduling/home-clock.ts";

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
    else await consumeDeliveries(at, batch);
  },

  async scheduled(_controller, env) {
    await Promise.all(homesOf(env).map((home) => callHomeClock(env, home)));
  },
} satisfies ExportedHandler<Env>;
