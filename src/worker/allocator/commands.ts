import type { AuditContext } from "../../shared/actor.ts";
import type { ErrorCode } from "../../shared/error-table.ts";
import type { DeviceId, InvitationDigest, UserDigest } from "../../shared/identifiers.ts";
import type { NumberRange } from "../../shared/number-range.ts";
import type { Reconciliation } from "../../shared/script-commands.ts";
import type { Application } from "../applications/application-cache.ts";
import type { InvitationRow, IssuedBadge } from "../storage/rows.ts";
import type { Transition } from "./decide/next-state.ts";

/**
 * Everything that changes an application's badges, invitations, numbers and blocks. The allocator decides commands in one order
 * (docs/architecture.md). Times are milliseconds.
 */

/** The settings of the application that a command is decided by, as the caller has them. */
export type Rules = Pick<
  Application,
  "range" | "reuseAfterSeconds" | "requireProof" | "bindUntil" | "newBadgesPerHour" | "rootKey"
> & { signingKey: Application["signingKeys"][number] };

/** A user, and the digest under which a block outlives the user's erasure (contract section 24). */
export interface NamedUser {
  userId: string;
  userDigest: UserDigest;
}

/** `POST /v1/badge`: a login, a new badge, or a claim. */
export interface BadgeCommand extends NamedUser {
  kind: "badge";
  rules: Rules;
  device: DeviceId;
  /** JSON text with the known fields in one order; null: none was sent. */
  metadata: string | null;
  /** Thumbprint of the proved key; null without a proof. */
  keyThumbprint: string | null;
  /** Whether the user's token was verified, or none is required (contract section 22). */
  isVerified: boolean;
  /** The invitation that is presented, and its token for the event; null: none. */
  invitation: { digest: InvitationDigest; token: string } | null;
}

export interface TransitionCommand {
  kind: "transition";
  number: number;
  transition: Transition;
  /** The change numbers that `If-Match` allows; null if any is allowed. */
  ifChange: readonly number[] | null;
  /** The user whose badge it must be; null: anybody's. */
  ownedBy: string | null;
}

export interface BlockCommand extends NamedUser {
  kind: "block" | "unblock";
}

export interface EraseCommand extends NamedUser {
  kind: "erase";
  /** What takes the user ID's place. */
  alias: string;
  /** Badges that earlier parts of this command erased. */
  erasedBefore?: number;
}

/** A new invitation, as it is stored. */
export type NewInvitation = Omit<InvitationRow, "number" | "state" | "endedAt" | "claimDevice" | "claimUserId">;

export interface InviteCommand {
  kind: "invite";
  rules: Rules;
  invitations: readonly NewInvitation[];
}

/** Who may revoke an invitation: the application's server, or the device that created it. */
export type Revoker = { kind: "server" } | { kind: "device"; device: DeviceId };

export interface RevokeInvitationCommand {
  kind: "revoke-invitation";
  /** The invitation's digest, or the number that it reserves. */
  id: InvitationDigest | number;
  revoker: Revoker;
}

export interface EraseInvitationCommand {
  kind: "erase-invitation";
  /** The invitation's digest, or the number that it reserves. */
  id: InvitationDigest | number;
}

/** Records the expiry of badges and invitations whose end has passed. */
interface RecordEndsCommand {
  kind: "record-ends";
}

/** Deletes an ended invitation that need not be kept any more. */
interface PurgeCommand {
  kind: "purge";
  /** Where the walk over all invitations goes on. */
  after: string;
  /** Invitations that ended until then are deleted, milliseconds. */
  endedUntil: number;
}

/** Skips fresh numbers (contract section 21). */
export interface SkipCommand {
  kind: "skip";
  numbers: number;
  range: NumberRange;
  /** What the comparison before it found, for the script. */
  found: Reconciliation;
}

export type Command =
  | BadgeCommand
  | TransitionCommand
  | BlockCommand
  | EraseCommand
  | InviteCommand
  | RevokeInvitationCommand
  | EraseInvitationCommand
  | RecordEndsCommand
  | PurgeCommand
  | SkipCommand;

/** A command with what its caller knows about the call. */
export interface Call {
  /** Random; a call that is repeated has the same one, and gets the same result. */
  id: string;
  /** When the caller gives up: later the command is not decided any more. */
  until: number;
  audit: AuditContext;
  command: Command;
}

/**
 * The version of messages to an allocator. During a deployment the Worker and an allocator may be of two releases.
 * Raise it when an allocator of the previous release could not decide a command, or would return its result in another
 * form. The new allocator must then decide messages of both versions, and return results in the form of the message's
 * version.
 */
export const CALL_VERSION = 1;

/** A call as it is sent to the allocator. */
export interface CallMessage extends Call {
  version: number;
}

export type Refused = { kind: "refused"; code: ErrorCode };

/** What the allocator decided for a call. */
export type Result =
  | { kind: "created" | "existing"; number: number; keyThumbprint: string | null }
  | { kind: "badge"; badge: IssuedBadge }
  | { kind: "user"; userId: string; numbers: number[] }
  /** `isDone`: false while the user has more badges than one transaction erases. */
  | { kind: "erased"; userId: string; erased: number; isDone: boolean }
  | { kind: "invitations"; results: ({ number: number } | { code: ErrorCode })[] }
  | { kind: "invitation-revoked"; number: number; expiresAt: string; revokedAt: number }
  | { kind: "invitation-erased"; number: number }
  | Reconciliation
  /** `isDone`: false if there is more. `after`: where a walk goes on. */
  | { kind: "recorded"; isDone: boolean; after?: string }
  | Refused;

/**
 * What a caller gets: a result, or none. `unavailable`: nothing was decided, or nobody knows whether it was (src/worker/platform.ts).
 * `failed`: something is wrong with the allocator; nothing was changed.
 */
export type CallOutcome = Result | { kind: "unavailable" | "failed" };

/** A call's result as an entry stores it, with the call's ID and the time until which the call may be repeated. */
export interface CallResult {
  id: string;
  until: number;
  result: Result;
}

export const refused = (code: ErrorCode): Refused => ({ kind: "refused", code });
