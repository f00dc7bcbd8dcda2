import * as z from "zod";
import { ACTOR_KINDS, type Actor } from "./actor.ts";
import { badgeView } from "./responses.ts";

/**
 * Commands of the administration script that an application's object carries out (contract section 21), as the table `inbox` has
 * them: the script writes no badge, invitation or block itself. Carrying one out twice does no harm.
 */

const number = z.number().int().positive();

const inboxCommand = z.discriminatedUnion("kind", [
  z.object({ kind: z.enum(["suspend", "resume", "revoke", "rebind"]), number }),
  /** Milliseconds; null: the badge has no end. */
  z.object({ kind: z.literal("reschedule"), number, expiresAt: z.number().int().nullable() }),
  z.object({ kind: z.enum(["block", "unblock"]), userId: z.string() }),
  z.object({ kind: z.literal("erase"), userId: z.string() }),
  /** @see contract section 21; `skip`: fresh numbers that are skipped when a loss is accepted */
  z.object({ kind: z.literal("reconcile"), acceptLoss: z.boolean(), skip: z.number().int().nonnegative() }),
]);
export type InboxCommand = z.infer<typeof inboxCommand>;

const actor = z
  .object({ kind: z.enum(ACTOR_KINDS), name: z.string().nullable() })
  .transform(({ kind, name }): Actor => (name === null ? { kind } : { kind, name }));

/** A command with who gave it. */
export const inboxRequest = z.object({ command: inboxCommand, actor });
export type InboxRequest = z.infer<typeof inboxRequest>;

export const inboxResult = z.discriminatedUnion("kind", [
  /** The badge, as it is now (contract section 12). */
  z.object({ kind: z.literal("badge"), badge: badgeView }),
  /** `numbers`: badges that were revoked. */
  z.object({ kind: z.literal("user"), userId: z.string(), numbers: z.array(z.number()) }),
  z.object({ kind: z.literal("erased"), userId: z.string(), erased: z.number() }),
  /**
   * D1 and the object agree. `applied`: entries that D1 lacked; `journalSince`: D1 restored to any moment since then, in
   * milliseconds, can be brought up to date; null: since the application's beginning.
   */
  z.object({
    ...{ kind: z.literal("level"), sequence: z.number(), applied: z.number() },
    ...{ journalSince: z.number().nullable(), journalBytes: z.number() },
  }),
  /** Sequence numbers of the last entries; `d1` null: D1 does not know the application's position. */
  z.object({ kind: z.literal("gap"), d1: z.number().nullable(), journal: z.number() }),
  z.object({ kind: z.literal("loss-accepted"), d1: z.number(), journal: z.number(), skipped: z.number() }),
  z.object({ kind: z.literal("refused"), code: z.string() }),
  /** D1 refuses to store it; the log has the reason. */
  z.object({ kind: z.literal("failed") }),
]);
export type InboxResult = z.infer<typeof inboxResult>;
