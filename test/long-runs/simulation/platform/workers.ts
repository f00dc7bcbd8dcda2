/** What the service imports from `cloudflare:workers`, on Node. */

class Entry {
  readonly ctx: unknown;
  readonly env: unknown;

  constructor(ctx: unknown, env: unknown) {
    this.ctx = ctx;
    this.env = env;
  }
}

export class DurableObject extends Entry {}
export class WorkerEntrypoint extends Entry {}

/** Nobody calls an entrypoint here: `service/isolates.ts` makes the context. */
export const exports = {};
