import { createContext } from "./context.ts";
import { isFirstOfHour, warnIfHomeFills } from "./home-size.ts";
import { findHome, homesOf } from "./homes.ts";
import { app } from "./http/app.ts";
import { callHomeClock } from "./scheduling/client.ts";
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
    if (batch.queue.includes(DEAD_LETTERS)) await consumeDeadLetters(at, batch);
    else await consumeWakeUps(at, batch);
  },

  async scheduled({ scheduledTime }, env) {
    const homes = homesOf(env);
    const measured = isFirstOfHour(scheduledTime) ? homes : [];
    await Promise.all([...homes.map((home) => callHomeClock(env, home)), ...measured.map(warnIfHomeFills)]);
  },
} satisfies ExportedHandler<Env>;
