import type { Badge, Metadata } from "./types.ts";

/** The events of webhooks (contract sections 8 and 18), distinguished by `event`. */
export type WebhookEvent = BadgeCreatedEvent | BadgeChangedEvent | InvitationEndedEvent;

interface EventFields {
  /** The same on every attempt: handle each ID once. */
  id: string;
  /** ISO 8601, UTC. */
  createdAt: string;
}

/** A user device got its badge. */
export interface BadgeCreatedEvent extends EventFields {
  event: "badge:created";
  data: {
    /** The badge number. */
    id: string;
    userId: string;
    metadata?: Metadata | undefined;
    /** The invitation's name of the visitor, if it has one. */
    name?: string | undefined;
    /** Time from which the badge opens doors: ISO 8601, UTC. Absent if from its issue on. */
    startsAt?: string | undefined;
    /** RFC 7638 thumbprint of the key that the badge is bound to; absent if unbound. */
    keyThumbprint?: string | undefined;
    /** The `id` of the claimed invitation, if there was one. */
    invitationId?: string | undefined;
    /** The number that this user device had before its invitation. It is retired for good: remove its access. */
    replacedBadgeId?: string | undefined;
  };
}

export const BADGE_CHANGED_EVENTS = [
  "badge:suspended",
  "badge:resumed",
  "badge:revoked",
  "badge:expired",
  "badge:replaced",
] as const;

/** A badge has another state. */
export interface BadgeChangedEvent extends EventFields {
  event: (typeof BADGE_CHANGED_EVENTS)[number];
  /** The badge after the change. Webhooks come in any order: ignore one whose `change` is lower than that of your copy. */
  data: Badge & { change: number };
}

export const INVITATION_ENDED_EVENTS = ["invitation:revoked", "invitation:expired"] as const;

/** An invitation ended without being claimed. */
export interface InvitationEndedEvent extends EventFields {
  event: (typeof INVITATION_ENDED_EVENTS)[number];
  data: {
    /** The number that it had reserved. Another badge may have it by now. */
    id: string;
    /** Exactly as it was sent. */
    expiresAt: string;
  };
}
