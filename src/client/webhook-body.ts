import { isObject } from "./json.ts";
import { readMetadata } from "./responses.ts";
import type { BadgeCreatedEvent } from "./types.ts";

/** What a webhook says. */
export interface WebhookBody {
  eventId: string;
  /** The event's name on the wire. */
  kind: string;
  /** Null for every kind but `badge:created`, such as an administrator's test: nothing needs to be done. */
  event: BadgeCreatedEvent | null;
}

/** Reads the parsed body; null if it is not what the contract says. */
export function readWebhookBody(body: unknown): WebhookBody | null {
  if (!isObject(body) || typeof body.id !== "string" || typeof body.event !== "string") return null;
  const { id: eventId, event: kind } = body;
  if (kind !== "badge:created") return { eventId, kind, event: null };
  const data = readCreatedBadge(body.data);
  if (data === null || typeof body.createdAt !== "string") return null;
  return { eventId, kind, event: { id: eventId, event: kind, createdAt: body.createdAt, data } };
}

function readCreatedBadge(value: unknown): BadgeCreatedEvent["data"] | null {
  if (!isObject(value)) return null;
  const { id, userId, metadata, invitationId, replacedBadgeId } = value;
  if (typeof id !== "string" || typeof userId !== "string") return null;
  const knownMetadata = metadata === undefined ? undefined : readMetadata(metadata);
  if (knownMetadata === null || !isOptionalText(invitationId) || !isOptionalText(replacedBadgeId)) return null;
  return {
    id,
    userId,
    ...(knownMetadata && { metadata: knownMetadata }),
    ...(invitationId !== undefined && { invitationId }),
    ...(replacedBadgeId !== undefined && { replacedBadgeId }),
  };
}

const isOptionalText = (value: unknown): value is string | undefined =>
  value === undefined || typeof value === "string";
