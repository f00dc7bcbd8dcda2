import type { Role } from "../shared/actor.ts";
import type { MetadataField } from "../shared/metadata-fields.ts";
import type { BadgeState, HistoryActor } from "./types.ts";

/** An application's settings, invitations, events and counts (contract section 19). Times are ISO 8601 in UTC. */

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
  /** How long signatures are valid. Absent: for ever. */
  signatureLifetimeSeconds?: number | undefined;
  /** Null: no webhooks are sent. */
  webhookUrl: string | null;
  /** What the QR code of an invitation opens, with its token for `{token}`. Absent: it has the token alone. */
  invitationLink?: string | undefined;
  /** Whose console secret this client uses. Absent: the application's own secret. */
  signedIn?: { name: string; role: Role } | undefined;
}

/** Somebody who has a console secret. */
export interface ConsolePerson {
  name: string;
  role: Role;
  /** When the secret was made. */
  createdAt: string;
}

/** A door that has a secret (contract section 26). */
export interface ConnectedDoor {
  name: string;
  /** When the secret was made. ISO 8601, UTC. */
  createdAt: string;
  /** When the door called last; absent: it has never called. */
  seenAt?: string | undefined;
  /** The last change that it had then. */
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

/** What was done, when and by whom (contract section 23). */
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

/** An invitation as it is listed: without its token, of which the service has only a digest. */
export interface ListedInvitation {
  /** The number that it reserves or reserved. */
  badgeId: string;
  state: InvitationState;
  createdAt: string;
  /** Exactly as it was sent. */
  expiresAt: string;
  /** End of the badge that is claimed, exactly as it was sent. */
  badgeExpiresAt?: string | undefined;
  /** From when the badge that is claimed opens doors, exactly as it was sent. */
  badgeStartsAt?: string | undefined;
  /** Who was invited. */
  name?: string | undefined;
  /** Who claimed it, or is to. */
  userId?: string | undefined;
}

export interface InvitationPage {
  invitations: ListedInvitation[];
  /** Where the next page starts; null on the last page. */
  nextCursor: string | null;
}

/** `exhausted`: all attempts failed. `held`: it waits until the endpoint is released. */
export type EventState = "pending" | "delivered" | "exhausted" | "held";

/** An event and how its delivery went. */
export interface ListedEvent {
  id: string;
  /** The event's name on the wire, such as `badge:created`. */
  event: string;
  state: EventState;
  /** Attempts since it was made or replayed. */
  attempts: number;
  /** HTTP status of the last response. */
  lastStatus: number | null;
  /** One word for how the last attempt ended; null before the first. */
  lastOutcome: string | null;
  /** First bytes of the last response. */
  lastResponse: string | null;
  createdAt: string;
  /**
   * When the next attempt is due; a time in the past means at once. Null: none follows, or none while the
   * application is disabled, has no URL, or its endpoint is held.
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

/** How many issued badges have which value of a metadata field, most frequent first. */
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
    /** Of badges that have not been replaced. */
    issued: number;
    /** By pending invitations. */
    reserved: number;
    /** Of replaced badges. */
    retired: number;
    /** Of ended invitations, until the reuse delay has passed. */
    coolingDown: number;
    /** Can be issued. */
    left: number;
    /** All others. */
    used: number;
    /** Rounded down to a tenth. */
    usedPercent: number;
  };
  /** By metadata, of those that are sampled. */
  badges: Record<MetadataField, ValueCounts>;
  /** The newest badges, of which metadata is counted: 20,000 at most. */
  sampled: number;
  invitations: Record<InvitationState, number>;
  badgesByState: Record<BadgeState, number>;
  /** 90 days in UTC (`2027-01-15`), oldest first, today last. */
  badgesPerDay: { day: string; badges: number }[];
  /** By state and last outcome (null: no attempt was made), most frequent first. */
  deliveries: { state: EventState; outcome: string | null; events: number }[];
  /** Logins of the last day by what their user token was like, counted while tokens are only observed. */
  logins: { withToken: number; withoutToken: number; withWrongToken: number };
  /** When this was counted: now. */
  asOf: string;
}
