import { env } from "cloudflare:workers";
import { createContext } from "../../../../src/worker/context.ts";
import { consumeWakeUps } from "../../../../src/worker/webhooks/consumer.ts";
import floor from "./floor.ts";
import type { FloorEnv } from "./floor-allocator.ts";

export { WebhookSender } from "../../../../src/worker/webhooks/sender.ts";
export { Allocator } from "./floor-allocator.ts";

/** The floor with the service's own deliveries: what they cost is the same on both sides. */
export default {
  fetch: floor.fetch,
  queue: (batch, _, execution) =>
    consumeWakeUps(
      createContext(env, (work) => execution.waitUntil(work)),
      batch,
    ),
} satisfies ExportedHandler<FloorEnv>;
