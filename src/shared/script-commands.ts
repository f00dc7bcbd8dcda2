import * as z from "zod";
import { ACTOR_KINDS, type Actor } from "./actor.ts";
import { applicationId } from "./identifiers.ts";
import { badgeView } from "./responses.ts";

/**
 * Commands of the administration script that the service carries out (contract section 21), as the table `script_command` has them:
 * the script writes no badge, invitation or block itself. Carrying one out twice does no harm.
 */

const number = z.number().int().positive();
const count = z.number().int().nonnegative();

/** For an application's allocator. */
const allocatorCommand = z.discriminatedUnion("kind", [
  z.object({ kind: z.enum(["suspend", "resume", "revoke", "rebind"]), number }),
  /** Milliseconds; null: the badge has no end. */
  z.object({ kind: z.literal("reschedule"), number, expiresAt: z.number().int().nullable() }),
  z.object({ kind: z.enum(["block", "unblock"]), userId: z.string() }),
  z.object({ kind: z.literal("erase"), userId: z.string() }),
  /** `verify`: compare every row; `republish`: replace D1's rows; `skip`: leave out fresh numbers. */
  z.object({ kind: z.literal("reconcile"), verify: z.boolean(), republish: z.boolean(), skip: count }),
]);
export type AllocatorCommand = z.infer<typeof allocatorCommand>;

/** For home 1's scheduler: the register of number ranges (contract section 17). */
export const homeCommand = z.discriminatedUnion("kind", [
  /** The script has registered these numbers in D1: are they nobody else's? */
  z.object({ kind: z.literal("register"), applicationId, firstNumber: number, lastNumber: number }),
  z.object({ kind: z.literal("release"), applicationId }),
]);
export type HomeCommand = z.infer<typeof homeCommand>;

/** `recipient` of commands for the scheduler. */
export const HOME_RECIPIENT = "home";

export type ScriptCommand = AllocatorCommand | HomeCommand;

const actor = z
  .object({ kind: z.enum(ACTOR_KINDS), name: z.string().nullable() })
  .transform(({ kind, name }): Actor => (name === null ? { kind } : { kind, name }));

/** A command with who gave it. */
export const allocatorRequest = z.object({ command: allocatorCommand, actor });
export type AllocatorRequest = z.infer<typeof allocatorRequest>;

export const homeRequest = z.object({ command: homeCommand, actor });

/** A row that D1 and the allocator have differently. */
const difference = z.object({
  table: z.string(),
  key: z.union([z.string(), z.number()]),
  problem: z.enum(["only in D1", "only in the allocator", "different"]),
  columns: z.array(z.string()).optional(),
});
export type RowDifference = z.infer<typeof difference>;

const reconciliation = z.object({
  kind: z.literal("reconciled"),
  /** `database-unknown`: D1's head is no entry of the log, or D1 does not know the application. */
  state: z.enum(["in-sync", "database-unknown"]),
  /** Sequence numbers of the last entries; D1's is null if D1 does not know the application. */
  allocator: count,
  d1: count.nullable(),
  /** Entries that D1 lacked. */
  sent: count,
  /** Since when the log has every entry, milliseconds; null: it has none but the last. And the bytes of the allocator's storage. */
  logSince: z.number().nullable(),
  bytes: count,
  republished: z.boolean(),
  skipped: count,
  /** Null: rows were not compared. */
  differences: z.object({ count, first: z.array(difference) }).nullable(),
});
export type Reconciliation = z.infer<typeof reconciliation>;

export const scriptResult = z.discriminatedUnion("kind", [
  /** The badge, as it is now (contract section 12). */
  z.object({ kind: z.literal("badge"), badge: badgeView }),
  /** `numbers`: badges that were revoked. */
  z.object({ kind: z.literal("user"), userId: z.string(), numbers: z.array(z.number()) }),
  z.object({ kind: z.literal("erased"), userId: z.string(), erased: z.number() }),
  reconciliation,
  /** The register of number ranges has them, or another application has some of them. */
  z.object({ kind: z.enum(["registered", "taken", "released"]) }),
  z.object({ kind: z.literal("refused"), code: z.string() }),
  /** It could not be carried out; the log has the reason. */
  z.object({ kind: z.literal("failed") }),
]);
export type ScriptResult = z.infer<typeof scriptResult>;
