import { parseMetadata } from "../../shared/badge-life/view.ts";
import { isoTime } from "../../shared/time.ts";
/** The content of a `badge:created` webhook (contract section 8). */
export interface BadgeCreated {
  eventId: string;
  /** Milliseconds. */
  createdAt: number;
  number: number;
  userId: string;
  /** JSON text as stored, or null. */
  metadata: string | null;
  /** Thumbprint of the key that the badge is bound to, if any. */
  keyThumbprint?: string | null;
  name?: string | null;
  /** Milliseconds; null if it has begun. */
  startsAt?: number | null;
  invitationId?: string;
  /** The number that the invitation's number replaced. */
  replacedNumber?: number | null;
}

/** The body of the webhook. It is serialized once: every attempt signs and sends these bytes. */
export function badgeCreatedPayload(created: BadgeCreated): string {
  const { eventId, createdAt, number, userId, metadata, name, startsAt } = created;
  const { keyThumbprint, invitationId, replacedNumber } = created;
  return JSON.stringify({
    id: eventId,
    event: "badge:created",
    createdAt: isoTime(createdAt),
    data: {
      id: String(number),
      userId,
      metadata: parseMetadata(metadata),
      ...(name != null && { name }),
      ...(startsAt != null && { startsAt: isoTime(startsAt) }),
      ...(keyThumbprint != null && { keyThumbprint }),
      ...(invitationId !== undefined && { invitationId }),
      ...(replacedNumber != null && { replacedBadgeId: String(replacedNumber) }),
    },
  });
}
