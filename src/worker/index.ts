import { createContext } from "./context.ts";
import { isFirstOfHour, warnIfHomeFills } from "./home-size.ts";
import { findHome, homesOf } from "./homes.ts";
import { app } from "./http/app.ts";
import { tickHome } from "./scheduling/scheduler-client.ts";
import { takeWakeMessages, wakeRecipients } from "./scheduling/wake-messages.ts";
import { type ContextOf, consumeDeadLetters, consumeDeliveries } from "./webhooks/consumer.ts";

export { Allocator } from "./allocator/allocator.ts";
export { Live } from "./live/live.ts";
export { HomeScheduler } from "./scheduling/home-scheduler.ts";

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
    const { isTick, recipients, others } = takeWakeMessages(batch);
    // Not awaited: a tick or a command may take long, and must not delay webhook events.
    if (isTick) execution.waitUntil(tickEveryHome(env));
    if (recipients.length > 0) execution.waitUntil(wakeRecipients(env, at, recipients));
    await (batch.queue.includes(DEAD_LETTERS) ? consumeDeadLetters(at, others) : consumeDeliveries(at, others));
  },

  async scheduled({ scheduledTime }, env) {
    const measured = isFirstOfHour(scheduledTime) ? homesOf(env) : [];
    await Promise.all([tickEveryHome(env), ...measured.map(warnIfHomeFills)]);
  },
} satisfies ExportedHandler<Env>;

async function tickEveryHome(env: Env): Promise<void> {
  await Promise.all(homesOf(env).map((home) => tickHome(env, home)));
}
