import type * as z from "zod";
import type { badgeView } from "../responses.ts";
import { isoTime } from "../time.ts";
import type { BadgeState } from "./states.ts";

/** A badge as the application's server sees it (contract section 12); times are UTC with milliseconds. */
export type BadgeView = z.infer<typeof badgeView>;

/** @returns null if the text is not a badge number (contract section 1) */
export function parseBadgeNumber(text: string): number | null {
  const number = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : null;
}

/**
 * Without zod, whose `z.record` takes most of the time of a page.
 *
 * @param metadata JSON text as stored, or null
 */
export function parseMetadata(metadata: string | null): Record<string, string> | undefined {
  if (metadata === null) return undefined;
  const fields: unknown = JSON.parse(metadata);
  if (!isTextRecord(fields)) throw new Error("stored metadata is an object of strings");
  return fields;
}

const isTextRecord = (value: unknown): value is Record<string, string> =>
  typeof value === "object" && value !== null && Object.values(value).every((field) => typeof field === "string");

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
