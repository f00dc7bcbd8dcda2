/** What the service imports from `cloudflare:workers`, on Node. */
export class DurableObject {
  constructor(ctx: unknown, env: unknown) {
    Object.assign(this, { ctx, env });
  }
}

export { DurableObject as WorkerEntrypoint };

/** Nobody calls an entrypoint here: `service/isolates.ts` makes the context. */
export const exports = {};
