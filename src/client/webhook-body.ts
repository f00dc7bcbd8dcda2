import { isObject } from "./json.ts";
import { number, object, oneOf, optional, type Reader, read, text } from "./reading.ts";
import { badgeFields, metadata } from "./responses.ts";
import {
  BADGE_CHANGED_EVENTS,
  type BadgeChangedEvent,
  type BadgeCreatedEvent,
  INVITATION_ENDED_EVENTS,
  type InvitationEndedEvent,
  type WebhookEvent,
} from "./webhook-events.ts";

/** The content of a webhook. */
export interface WebhookBody {
  eventId: string;
  /** The event's name on the wire. */
  kind: string;
  /** Null for other kinds, such as an administrator's test or one of a newer service: nothing needs to be done. */
  event: WebhookEvent | null;
}

/** Reads the parsed body; null if it is not what the contract says. */
export function readWebhookBody(body: unknown): WebhookBody | null {
  if (!isObject(body) || typeof body.id !== "string" || typeof body.event !== "string") return null;
  const { id: eventId, event: kind } = body;
  const reader = READERS.get(kind);
  if (!reader) return { eventId, kind, event: null };
  const event = read(reader, body);
  return event && { eventId, kind, event };
}

const common = { id: text, createdAt: text };

const badgeCreated = object<BadgeCreatedEvent>({
  ...common,
  event: oneOf("badge:created"),
  data: object<BadgeCreatedEvent["data"]>({
    id: text,
    userId: text,
    metadata: optional(metadata),
    keyThumbprint: optional(text),
    invitationId: optional(text),
    replacedBadgeId: optional(text),
  }),
});

const badgeChanged = object<BadgeChangedEvent>({
  ...common,
  event: oneOf(...BADGE_CHANGED_EVENTS),
  data: object<BadgeChangedEvent["data"]>({ ...badgeFields, change: number }),
});

const invitationEnded = object<InvitationEndedEvent>({
  ...common,
  event: oneOf(...INVITATION_ENDED_EVENTS),
  data: object<InvitationEndedEvent["data"]>({ id: text, expiresAt: text }),
});

const READERS = new Map<string, Reader<WebhookEvent>>([
  ["badge:created", badgeCreated],
  ...BADGE_CHANGED_EVENTS.map((name) => [name, badgeChanged] as const),
  ...INVITATION_ENDED_EVENTS.map((name) => [name, invitationEnded] as const),
]);
