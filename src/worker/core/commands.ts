import type { Origin } from "../../shared/actor.ts";
import type { ErrorCode } from "../../shared/error-table.ts";
import type { DeviceId, InvitationDigest } from "../../shared/identifiers.ts";
import type { Application } from "../applications/registry.ts";
import type { InvitationRow, IssuedBadge } from "../storage/rows.ts";
import type { Step } from "./decide/states.ts";

/**
 * Everything that changes an application's badges, invitations, numbers and blocks. The application's object carries commands
 * out in one order (docs/architecture.md). Times are milliseconds.
 */

/** The settings of the application that a command is decided by, as the caller has them. */
export type Rules = Pick<
  Application,
  "range" | "reuseAfterSeconds" | "requireProof" | "bindUntil" | "newBadgesPerHour" | "deviceKey"
> & { signingKey: Application["signingKeys"][number] };

/** `POST /v1/badge`: a login, a new badge, or a claim. */
export interface BadgeCommand {
  kind: "badge";
  rules: Rules;
  device: DeviceId;
  userId: string;
  /** JSON text with the known fields in one order; null: none was sent. */
  metadata: string | null;
  /** Of the key that was proved; null: none. */
  keyThumbprint: string | null;
  /** Whether the identity provider vouches for the user, or nobody has to (contract section 22). */
  isVerified: boolean;
  /** Whether the caller saw no badge of this user device. */
  isNew: boolean;
  /** The invitation that is presented, and its token for the event; null: none. */
  invitation: { digest: InvitationDigest; token: string } | null;
}

export interface StepCommand {
  kind: "step";
  number: number;
  step: Step;
  /** Of `If-Match`: the change numbers of which the badge must have one; null: it may have any. */
  ifChange: readonly number[] | null;
  /** The user whose badge it must be; null: anybody's. */
  ownedBy: string | null;
}

interface BlockCommand {
  kind: "block" | "unblock";
  userId: string;
}

export interface EraseCommand {
  kind: "erase";
  userId: string;
  /** What takes the user ID's place. */
  alias: string;
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

/** What the clock made due: expiries of badges and invitations. */
interface RecordDueCommand {
  kind: "record-due";
}

/** A block whose badges are not all revoked yet. */
interface FinishBlockCommand {
  kind: "finish-block";
  userId: string;
}

export type Command =
  | BadgeCommand
  | StepCommand
  | BlockCommand
  | EraseCommand
  | InviteCommand
  | RevokeInvitationCommand
  | RecordDueCommand
  | FinishBlockCommand;

/** A command with what its caller knows about the call. */
export interface Call {
  /** Random; a call that is repeated has the same one, and gets the same outcome. */
  id: string;
  /** When the caller gives up: later the command is not decided any more. Null: never. */
  until: number | null;
  origin: Origin;
  command: Command;
}

export type Refused = {
  kind: "refused";
  code: ErrorCode;
};

export type Outcome =
  | { kind: "created" | "existing"; number: number; keyThumbprint: string | null }
  | { kind: "badge"; badge: IssuedBadge }
  | { kind: "user"; userId: string; numbers: number[] }
  | { kind: "erased"; userId: string; erased: number }
  | { kind: "invitations"; results: ({ number: number } | { code: ErrorCode })[] }
  | { kind: "invitation-revoked"; number: number; expiresAt: string; revokedAt: number }
  | { kind: "recorded" }
  | Refused
  /** Nothing was changed, or nobody knows; see src/worker/platform.ts. */
  | { kind: "unavailable" }
  /** D1 refuses to store what was decided; nothing was changed. */
  | { kind: "failed" };

export const refused = (code: ErrorCode): Refused => ({ kind: "refused", code });
