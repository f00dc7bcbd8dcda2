import { isObject } from "./json.ts";
import { object, type Reader } from "./reading.ts";
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
  /** Null for other kinds, such as an administrator's test or an event of a newer service; no action is needed. */
  event: WebhookEvent | null;
}

/** Reads the parsed body; null if it violates the contract. */
export function readWebhookBody(body: unknown): WebhookBody | null {
  if (!isObject(body) || typeof body.id !== "string" || typeof body.event !== "string") return null;
  const { id: eventId, event: kind } = body;
  const reader = READERS.get(kind);
  if (!reader) return { eventId, kind, event: null };
  const event = reader(body);
  return event && { eventId, kind, event };
}

/** An event whose `data` has these fields. */
function eventWith<Event extends WebhookEvent>(data: Parameters<typeof object<Event["data"]>>[0]): Reader<Event> {
  const [readData, readEvent] = [object<Event["data"]>(data), object<WebhookEvent>({ createdAt: "string" })];
  const isEvent = (event: unknown): event is Event =>
    readEvent(event) !== null && isObject(event) && readData(event.data) !== null;
  return (event) => (isEvent(event) ? event : null);
}

const badgeCreated = eventWith<BadgeCreatedEvent>({ id: "string", userId: "string" });
const badgeChanged = eventWith<BadgeChangedEvent>({
  id: "string",
  userId: "string",
  state: "string",
  change: "number",
});
const invitationEnded = eventWith<InvitationEndedEvent>({ id: "string", expiresAt: "string" });

const READERS = new Map<string, Reader<WebhookEvent>>([
  ["badge:created", badgeCreated],
  ...BADGE_CHANGED_EVENTS.map((name) => [name, badgeChanged] as const),
  ...INVITATION_ENDED_EVENTS.map((name) => [name, invitationEnded] as const),
]);
