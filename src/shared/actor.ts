import * as z from "zod";

/** Kinds of actors that history names (contract section 23). `service`: the clock. */
export const ACTOR_KINDS = ["device", "user", "server", "person", "administrator", "service"] as const;

/** Who did something. `name`: of a person's console secret, of an administrator, or what a server calls its user. */
export const actor = z.object({ kind: z.enum(ACTOR_KINDS), name: z.string().optional() });
export type Actor = z.infer<typeof actor>;

/** What history says about a call, besides what it did. */
export interface Origin {
  actor: Actor;
  requestId?: string;
  /** As the caller gave it. */
  reason?: string;
}

export const BY_CLOCK: Origin = { actor: { kind: "service" } };
