import * as z from "zod";
import { type BadgeState, stateAt } from "../../shared/badge-lifecycle/states.ts";
import { parseMetadata } from "../../shared/badge-lifecycle/view.ts";
import type { badgePage } from "../../shared/responses.ts";
import { isoTime } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { cursorCodec } from "../cursor.ts";
import { type BadgePageQuery, type ListedBadge, listBadges } from "../storage/badges.ts";

type ListedView = z.infer<typeof badgePage>["badges"][number];

/** Cursors have the ordinal of the last badge before the next page. */
export const BADGE_CURSOR = cursorCodec("badges", z.int().nonnegative());
export const NEWEST_BADGE_CURSOR = cursorCodec("newest-badges", z.int().nonnegative());

/**
 * A page of issued badges. With the oldest first, badges that are issued while a caller pages appear at the end, and no
 * badge appears twice.
 *
 * @param isForConsoleUser whether search results say who last changed each badge
 * @returns the badges, and the ordinal after which the next page starts; null on the last page
 */
export async function pageBadges(
  context: Context,
  query: BadgePageQuery,
  isForConsoleUser = false,
): Promise<{ badges: ListedView[]; next: number | null }> {
  const now = context.now();
  const isFound = !isPlain(query);
  const { items, last } = await listBadges(context.db, query, now, {
    withTimes: isFound,
    withHistory: isFound && isForConsoleUser,
  });
  const view = isFound ? (badge: ListedBadge) => viewFound(badge, query.state) : viewListed;
  // A page may have fewer badges, because expiries of the last minute are not recorded yet.
  const isListed = (badge: ListedBadge) => query.state !== null || stateAt(badge, now) !== "expired";
  return { badges: items.filter(isListed).map(view), next: last?.ordinal ?? null };
}

/** Whether the page is the plain list of active and suspended badges (contract section 4). Other pages follow section 24. */
const isPlain = ({ state, text, endsBefore, isNewestFirst }: BadgePageQuery): boolean =>
  state === null && text === null && endsBefore === null && !isNewestFirst;

/** Active badges have no `state` here (contract section 12). */
function viewListed(badge: ListedBadge): ListedView {
  const { number, userId, name, metadata, state, startsAt, expiresAt } = badge;
  return {
    id: String(number),
    userId,
    name: name ?? undefined,
    metadata: parseMetadata(metadata),
    state: state === "suspended" ? state : undefined,
    startsAt: isoTime(startsAt) ?? undefined,
    expiresAt: isoTime(expiresAt) ?? undefined,
  };
}

/** Search results add the state, the times of issue and of the last change, and its actor. */
function viewFound(badge: ListedBadge, asked: BadgeState | null): ListedView {
  const state = asked ?? badge.state;
  return {
    ...viewListed(badge),
    state: state === "active" ? undefined : state,
    issuedAt: isoTime(badge.issuedAt ?? null) ?? undefined,
    changedAt: isoTime(badge.changedAt ?? null) ?? undefined,
    ...viewChangedBy(badge),
  };
}

/** A login may change a badge without a history row, and a rebinding has a row without a change: only a row of the same time counts. */
function viewChangedBy({ lastHistoryRow, changedAt }: ListedBadge): Pick<ListedView, "changedBy"> {
  if (!lastHistoryRow) return {};
  const { at, kind, name } = lastHistoryRow;
  if (at !== changedAt) return {};
  return { changedBy: { kind, ...(name !== null && { name }) } };
}
