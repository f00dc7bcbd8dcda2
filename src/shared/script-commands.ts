import * as z from "zod";
import { ACTOR_KINDS, type Actor } from "./actor.ts";
import { applicationId } from "./identifiers.ts";
import { MAX_SKIPPED_NUMBERS } from "./limits/allocator-limits.ts";
import { badgeView } from "./responses.ts";

/**
 * Commands of the administration script that the service carries out, as the table
 * `script_command` has them: the script writes no badge, invitation or block itself. Each may be carried out twice.
 */

const number = z.number().int().positive();
const count = z.number().int().nonnegative();

/** Commands for an application's allocator. */
const allocatorCommand = z.discriminatedUnion("kind", [
  z.object({ kind: z.enum(["suspend", "resume", "revoke", "rebind"]), number }),
  /** Milliseconds; null: the badge has no end. */
  z.object({ kind: z.literal("reschedule"), number, expiresAt: z.number().int().nullable() }),
  z.object({ kind: z.enum(["block", "unblock"]), userId: z.string() }),
  z.object({ kind: z.literal("erase"), userId: z.string() }),
  /** Changes nothing: only the service knows whether an erased user is blocked. */
  z.object({ kind: z.literal("show-user"), userId: z.string() }),
  /** `verify`: compare every row; `republish`: replace D1's rows; `skip`: leave out fresh numbers. */
  z.object({
    kind: z.literal("reconcile"),
    verify: z.boolean(),
    republish: z.boolean(),
    skip: count.max(MAX_SKIPPED_NUMBERS),
  }),
]);
export type AllocatorCommand = z.infer<typeof allocatorCommand>;

/** Commands for home 1's scheduler, which keeps the register of number ranges. */
const homeCommand = z.discriminatedUnion("kind", [
  /** Registers numbers for an application, or more of them. */
  z.object({
    kind: z.literal("register"),
    applicationId,
    /** Null for its present numbers, or the lowest free block of the default size. */
    range: z.object({ first: number, last: number }).nullable(),
  }),
  /** Frees the numbers of an application that does not exist. */
  z.object({ kind: z.literal("release"), applicationId }),
]);
export type HomeCommand = z.infer<typeof homeCommand>;

/** `recipient` of commands for the scheduler. */
export const HOME_RECIPIENT = "home";

/** Who carries a command out: an application's allocator, or home 1's scheduler. */
export const recipient = z.union([z.literal(HOME_RECIPIENT), applicationId]);
export type Recipient = z.infer<typeof recipient>;

/** A message of the webhook queue: commands wait for this recipient. The tick finds the commands of a lost message. */
export const wakeMessage = z.object({ wake: recipient });
export type WakeMessage = z.infer<typeof wakeMessage>;

const actor = z
  .object({ kind: z.enum(ACTOR_KINDS), name: z.string().nullable() })
  .transform(({ kind, name }): Actor => (name === null ? { kind } : { kind, name }));

/** A command and its actor. */
export const allocatorRequest = z.object({ command: allocatorCommand, actor });
export type AllocatorRequest = z.infer<typeof allocatorRequest>;

export const homeRequest = z.object({ command: homeCommand });

/** It could not be carried out; the log has the reason. */
const failed = z.object({ kind: z.literal("failed") });

/** A row that differs between D1 and the allocator. */
const difference = z.object({
  table: z.string(),
  key: z.union([z.string(), z.number()]),
  problem: z.enum(["only in D1", "only in the allocator", "different"]),
  columns: z.array(z.string()).optional(),
});
export type RowDifference = z.infer<typeof difference>;

const reconciliation = z.object({
  kind: z.literal("reconciled"),
  /**
   * `database-unknown`: D1's head is no entry of the log, or D1 does not know the application. `entry-refused`: D1 refuses the next
   * entry.
   */
  state: z.enum(["in-sync", "database-unknown", "entry-refused"]),
  /** Sequence numbers of the last entries now; D1's is null if D1 does not know the application. */
  allocator: count,
  d1: count.nullable(),
  /** Time from which the log is complete, in milliseconds; null if it has only the last entry. */
  logSince: z.number().nullable(),
  /** Size of the allocator's storage. */
  bytes: count,
  republished: z.boolean(),
  skipped: count,
  /** Null if rows were not compared. */
  differences: z.object({ count, first: z.array(difference) }).nullable(),
});
export type Reconciliation = z.infer<typeof reconciliation>;

/** The result of a command for an allocator. */
export const scriptResult = z.discriminatedUnion("kind", [
  /** The badge, as it is now. */
  z.object({ kind: z.literal("badge"), badge: badgeView }),
  /** `numbers`: badges that were revoked. */
  z.object({ kind: z.literal("user"), userId: z.string(), numbers: z.array(z.number()) }),
  z.object({ kind: z.literal("erased"), userId: z.string(), erased: z.number() }),
  z.object({ kind: z.literal("user-shown"), userId: z.string(), blocked: z.boolean() }),
  reconciliation,
  z.object({ kind: z.literal("refused"), code: z.string() }),
  failed,
]);
export type ScriptResult = z.infer<typeof scriptResult>;

/** Numbers that are registered for an application. */
const registration = z.object({ applicationId, firstNumber: number, lastNumber: number, registeredAt: count });
export type Registration = z.infer<typeof registration>;

/** The result of a command for the scheduler. */
export const homeResult = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("registered"), registration }),
  /**
   * Some of the numbers are another application's, or the range does not begin where the application's present one does;
   * `owner` has the numbers in the way. It is null if no block is free.
   */
  z.object({ kind: z.literal("taken"), owner: registration.nullable() }),
  /** Null: nothing was registered. */
  z.object({ kind: z.literal("released"), registration: registration.nullable() }),
  /** It was registered too recently to be released. */
  z.object({ kind: z.literal("kept"), registration }),
  failed,
]);
export type HomeResult = z.infer<typeof homeResult>;
