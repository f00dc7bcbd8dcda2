import * as z from "zod";
import { newEventId } from "../identifiers.ts";
import type { EventName } from "../schema.ts";
import type { Transition } from "../storage/badge-transitions.ts";
import type { BadgeState } from "./states.ts";

/** A badge as the application's server sees it (contract section 12); times are UTC with milliseconds. */
export interface BadgeView {
  id: string;
  userId: string;
  state: BadgeState;
  metadata?: Record<string, string>;
  expiresAt?: string;
  keyThumbprint?: string;
}

/** @returns null if the text is not a badge number (contract section 1) */
export function parseBadgeNumber(text: string): number | null {
  const number = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : null;
}

const metadataFields = z.record(z.string(), z.string());

/** @param metadata JSON text as stored, or null */
export const parseMetadata = (metadata: string | null): Record<string, string> | undefined =>
  metadata === null ? undefined : metadataFields.parse(JSON.parse(metadata));

/** The parts of a badge that callers see; `expiresAt` is milliseconds. */
interface SeenBadge {
  number: number;
  userId: string;
  state: BadgeState;
  metadata: string | null;
  expiresAt: number | null;
  keyThumbprint: string | null;
}

export function viewBadge(badge: SeenBadge): BadgeView {
  const metadata = parseMetadata(badge.metadata);
  return {
    id: String(badge.number),
    userId: badge.userId,
    state: badge.state,
    ...(metadata && { metadata }),
    ...(badge.expiresAt !== null && { expiresAt: new Date(badge.expiresAt).toISOString() }),
    ...(badge.keyThumbprint !== null && { keyThumbprint: badge.keyThumbprint }),
  };
}

/**
 * The event of a change (contract section 18). Its `data` is the badge with `change` as the last member, which only the
 * transaction knows: the payload ends just before that number.
 */
export function badgeEvent(name: EventName, now: number, badge: SeenBadge): NonNullable<Transition["event"]> {
  const id = newEventId(now);
  const body = { id, event: name, createdAt: new Date(now).toISOString(), data: viewBadge(badge) };
  return { id, name, payloadUpToChange: `${JSON.stringify(body).slice(0, -2)},"change":` };
}
