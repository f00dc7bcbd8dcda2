import { d1Binding } from "./d1.ts";
import { allocatorBinding } from "./objects.ts";
import { queueBinding } from "./queue.ts";
import { standIn } from "./stand-in.ts";

/** Nobody is limited here: the limit is the platform's, and tested where there is HTTP. */
export const unlimited = standIn<RateLimit>("a rate limit", { limit: async () => ({ success: true }) });

/** What wrangler.toml binds to the Worker and to its objects. */
export const env: Env = standIn<Env>("the environment", {
  DB: d1Binding,
  ALLOCATOR: allocatorBinding,
  WEBHOOKS: queueBinding,
});
