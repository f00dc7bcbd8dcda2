import { env } from "cloudflare:workers";
import { createContext } from "../../../../src/worker/context.ts";
import { consumeWakeUps } from "../../../../src/worker/webhooks/consumer.ts";
import floor from "../floor.ts";
import type { FloorEnv } from "./allocator.ts";

export { WebhookSender } from "../../../../src/worker/webhooks/sender.ts";
export { Allocator } from "../floor.ts";

/** The floor with the service's own deliveries: what they cost is the same on both sides. */
export default {
  fetch: floor.fetch,

  async queue(batch, _, execution) {
    await consumeWakeUps(
      createContext(env, (work) => execution.waitUntil(work)),
      batch,
    );
  },
} satisfies ExportedHandler<FloorEnv>;
