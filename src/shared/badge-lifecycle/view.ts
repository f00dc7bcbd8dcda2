import type * as z from "zod";
import type { badgeView } from "../responses.ts";
import { isoTime } from "../time.ts";
import type { BadgeState } from "./states.ts";

/** A badge as the application's server sees it; times are UTC with milliseconds. */
export type BadgeView = z.infer<typeof badgeView>;

/** @returns null if the text is not a badge number (contract section 1) */
export function parseBadgeNumber(text: string): number | null {
  const number = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : null;
}

/**
 * Not checked again, because it was checked when it was stored, and checks would take most of a page's time.
 *
 * @param metadata JSON text as stored, or null
 */
export const parseMetadata = (metadata: string | null): Record<string, string> | undefined =>
  metadata === null ? undefined : JSON.parse(metadata);

/** The parts of a badge that callers see. Times are milliseconds. */
interface SeenBadge {
  number: number;
  userId: string;
  name: string | null;
  state: BadgeState;
  metadata: string | null;
  startsAt: number | null;
  expiresAt: number | null;
  keyThumbprint: string | null;
  issuedAt: number;
  changedAt: number;
}

export function viewBadge(badge: SeenBadge): BadgeView {
  return {
    id: String(badge.number),
    userId: badge.userId,
    name: badge.name ?? undefined,
    state: badge.state,
    metadata: parseMetadata(badge.metadata),
    startsAt: isoTime(badge.startsAt) ?? undefined,
    expiresAt: isoTime(badge.expiresAt) ?? undefined,
    keyThumbprint: badge.keyThumbprint ?? undefined,
    issuedAt: isoTime(badge.issuedAt),
    changedAt: isoTime(badge.changedAt),
  };
}
