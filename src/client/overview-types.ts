import type { MetadataField } from "../shared/metadata-fields.ts";
import type { Role } from "../shared/roles.ts";
import type { BadgeState, HistoryActor } from "./types.ts";

/** An application's settings, invitations, events and counts. Times are ISO 8601 in UTC. */

export interface Application {
  applicationId: string;
  name: string;
  /** The number range: `firstNumber` to `lastNumber`. */
  firstNumber: number;
  lastNumber: number;
  /** Whether only callers with the secret can create invitations. */
  requireSecret: boolean;
  /** Whether device calls need a DPoP proof. */
  requireProof: boolean;
  /** Whether it publishes status lists. */
  statusList: boolean;
  /** How long signatures are valid; absent if for ever. */
  signatureLifetimeSeconds?: number | undefined;
  /** Null if no webhooks are sent. */
  webhookUrl: string | null;
  /**
   * The link in the QR code of an invitation, with its token for `{token}`. Absent if the code contains only the token.
   */
  invitationLink?: string | undefined;
  /** The person of this client's console secret; absent for the application's own secret. */
  signedIn?: { name: string; role: Role } | undefined;
}

/** A person with a console secret. */
export interface ConsolePerson {
  name: string;
  role: Role;
  /** When the secret was made. */
  createdAt: string;
}

/** A door with a secret. */
export interface ConnectedDoor {
  name: string;
  /** When the secret was made. ISO 8601, UTC. */
  createdAt: string;
  /** The door's last call; absent if it has never called. */
  seenAt?: string | undefined;
  /** The change that it had then. */
  change?: number | undefined;
  /** Whether it called within 60 seconds and has the last change of status. */
  isCurrent: boolean;
}

export interface DoorPage {
  doors: ConnectedDoor[];
  /** Where the next page starts; null on the last page. */
  nextCursor: string | null;
}

export interface AccessPage {
  people: ConsolePerson[];
  /** Where the next page starts; null on the last page. */
  nextCursor: string | null;
}

/** An action, its time and its actor. */
export interface HistoryEntry {
  /** ISO 8601, UTC. */
  at: string;
  /** Such as `badge:suspended`; a newer service may have more. */
  action: string;
  actor: HistoryActor;
  badgeId?: string | undefined;
  userId?: string | undefined;
  /** `X-Request-Id` of the call. */
  requestId?: string | undefined;
  /** As the caller sent it. */
  reason?: string | undefined;
  detail?: Record<string, unknown> | undefined;
}

export interface HistoryPage {
  history: HistoryEntry[];
  /** Where the next page starts; null on the last page. */
  nextCursor: string | null;
}

export type InvitationState = "pending" | "claimed" | "revoked" | "expired";

/** A listed invitation, without its token, because the service has only a digest. */
export interface ListedInvitation {
  /** The number that it reserves or reserved. */
  badgeId: string;
  state: InvitationState;
  createdAt: string;
  /** Exactly as it was sent. */
  expiresAt: string;
  /** End of the badge that is claimed, exactly as it was sent, unless it was changed after the claim. */
  badgeExpiresAt?: string | undefined;
  /** Start of the claimed badge, exactly as it was sent, unless it was changed after the claim. */
  badgeStartsAt?: string | undefined;
  /** Who was invited. */
  name?: string | undefined;
  /** The user who claimed it, or may claim it. */
  userId?: string | undefined;
}

export interface InvitationPage {
  invitations: ListedInvitation[];
  /** Where the next page starts; null on the last page. */
  nextCursor: string | null;
}

/** `exhausted`: all attempts failed. `held`: it waits until the endpoint is released. */
export type EventState = "pending" | "delivered" | "exhausted" | "held";

/** An event and the state of its delivery. */
export interface ListedEvent {
  id: string;
  /** The event's name on the wire, such as `badge:created`. */
  event: string;
  state: EventState;
  /** Attempts since it was made or replayed. */
  attempts: number;
  /** HTTP status of the last response. */
  lastStatus: number | null;
  /** The outcome of the last attempt in one word; null before the first. */
  lastOutcome: string | null;
  /** First bytes of the last response. */
  lastResponse: string | null;
  createdAt: string;
  /**
   * Time of the next attempt; a past time means at once. Null if none follows, or while the application is disabled,
   * has no URL, or its endpoint is held.
   */
  nextAttemptAt: string | null;
  deliveredAt: string | null;
  /** `data` of the webhook's body. */
  data: Record<string, unknown>;
}

export interface EventPage {
  events: ListedEvent[];
  /** Where the next page starts; null on the last page. */
  nextCursor: string | null;
}

export interface ReplayedEvent {
  id: string;
  /** `held`: without a URL, or while the endpoint is held; it is sent on release. */
  state: "pending" | "held";
}

/** Numbers of issued badges by value of a metadata field, most frequent first. */
export interface ValueCounts {
  /** `value` null: the device did not send it. */
  values: { value: string | null; badges: number }[];
  /** Badges with another value. */
  others: number;
}

export interface Statistics {
  applicationId: string;
  name: string;
  /** The number range. */
  numbers: {
    size: number;
    /** Numbers of issued badges that no invitation's badge has superseded. */
    issued: number;
    /** Numbers that pending invitations reserve. */
    reserved: number;
    /** Numbers of badges that an invitation's badge has superseded, including revoked ones. */
    retired: number;
    /** Numbers of ended invitations, until the reuse delay has passed, counted to at most 10,000. */
    coolingDown: number;
    /** Numbers that can be issued. */
    left: number;
    /** Numbers that cannot be issued. */
    used: number;
    /** Rounded down to a tenth. */
    usedPercent: number;
  };
  /** The sampled badges by metadata. */
  badges: Record<MetadataField, ValueCounts>;
  /** The number of newest badges whose metadata is counted: at most 20,000. */
  sampled: number;
  invitations: Record<InvitationState, number>;
  badgesByState: Record<BadgeState, number>;
  /** 90 days in UTC (`2027-01-15`), oldest first, today last. */
  badgesPerDay: { day: string; badges: number }[];
  /**
   * Events by state and last outcome (null before the first attempt), most frequent first. Of each state at most 10,000 are counted:
   * delivered and untried ones are those among the newest 10,000 events.
   */
  deliveries: { state: EventState; outcome: string | null; events: number }[];
  /** Logins of the last day by the validity of their user tokens, counted while tokens are only observed. */
  logins: { withToken: number; withoutToken: number; withWrongToken: number };
  /** When this was counted: at the time of the call. */
  asOf: string;
}
