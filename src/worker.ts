import { DurableObject } from "cloudflare:workers";

export class Allocator extends DurableObject<Env> {}

export default { fetch: () => new Response("ok") };
