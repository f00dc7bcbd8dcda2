import { parseMetadata } from "../../shared/badge-life/view.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { Context } from "../context.ts";
import { decodeCursorText, encodeCursorText } from "../cursor.ts";
import { type ListedBadge, listBadges } from "../storage/badges.ts";

export interface BadgePage {
  badges: {
    id: string;
    userId: string;
    metadata?: Record<string, string>;
    state?: "suspended";
    expiresAt?: string;
  }[];
  /** Present exactly when more follow. */
  nextCursor: string | null;
}

/** A page of issued badges, oldest first. Badges issued while a caller pages come at the end, and none comes twice. */
export async function pageBadges(
  context: Context,
  page: { applicationId: ApplicationId; userId: string | null; after: number; perPage: number },
): Promise<BadgePage> {
  const { perPage, ...rest } = page;
  // One row more than requested shows whether there is a next page.
  const rows = await listBadges(context.db, { ...rest, limit: perPage + 1 });
  const shown = rows.slice(0, perPage);
  const last = shown.at(-1);
  return {
    badges: shown.map(viewListed),
    nextCursor: rows.length > perPage && last ? encodeCursor(last.position) : null,
  };
}

/** Active badges have no `state` here (contract section 12). Expired ones leave the list when the sweep records it. */
function viewListed({ number, userId, metadata, state, expiresAt }: ListedBadge): BadgePage["badges"][number] {
  const fields = parseMetadata(metadata);
  return {
    id: String(number),
    userId,
    ...(fields && { metadata: fields }),
    ...(state === "suspended" && { state }),
    ...(expiresAt !== null && { expiresAt: new Date(expiresAt).toISOString() }),
  };
}

const CURSOR = /^after:(0|[1-9]\d{0,15})$/;

/** Opaque to callers: the position after which the next page starts. */
export function encodeCursor(position: number): string {
  return encodeCursorText(`after:${position}`);
}

/** @returns the position, or null for a text that `encodeCursor` cannot have made */
export function decodeCursor(cursor: string): number | null {
  const position = CURSOR.exec(decodeCursorText(cursor))?.[1];
  if (position === undefined || encodeCursor(Number(position)) !== cursor) return null;
  return Number(position);
}
