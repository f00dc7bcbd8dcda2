import * as z from "zod";
import type { BadgeState } from "../../shared/badge-life/states.ts";
import { STORED_STATES, type StoredState } from "../../shared/badge-life/states.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { isObject } from "../json-object.ts";
import { type Bind, type Scan, type ScannedPage, scanLimit, scanPage } from "./bounded-scan.ts";
import type { Database } from "./database.ts";
import { containsText } from "./text-search.ts";

/** Which of an application's badges a page lists (contract sections 4 and 24). */
interface BadgeFilter {
  userId: string | null;
  /** Null: active and suspended ones. */
  state: BadgeState | null;
  /** Part of the user ID or the name, in any case; null: any. */
  text: string | null;
  /** Milliseconds; null: whenever they end, if they do. */
  endsBefore: number | null;
}

export interface BadgePageQuery extends BadgeFilter {
  applicationId: ApplicationId;
  isNewestFirst: boolean;
  /** The position after which the page starts; null: the first page. */
  after: number | null;
  perPage: number;
}

/** Milliseconds, or null. */
const TIMES = ["startsAt", "expiresAt", "endedAt", "issuedAt", "changedAt"] as const;

export interface ListedBadge extends Record<(typeof TIMES)[number], number | null> {
  number: number;
  userId: string;
  name: string | null;
  metadata: string | null;
  position: number;
  state: StoredState;
  /** JSON; undefined if it was not asked for. */
  lastEntry?: string | null;
}

/** No zod object: where code cannot be generated, as in a Worker, that check takes most of the time of a page. */
const listedRows = z.array(
  z.custom<ListedBadge>(
    (row) =>
      isObject(row) &&
      typeof row.userId === "string" &&
      STORED_STATES.some((state) => state === row.state) &&
      [row.number, row.position].every((value) => typeof value === "number") &&
      [row.name, row.metadata, row.lastEntry ?? null].every((value) => value === null || typeof value === "string") &&
      TIMES.every((time) => row[time] === null || typeof row[time] === "number"),
  ),
);

const COLUMNS = `
  number, user_id AS userId, name, metadata, position, state, starts_at AS startsAt, expires_at AS expiresAt,
  ended_at AS endedAt, issued_at AS issuedAt, changed_at AS changedAt`;

/** The newest row of a badge's history. Two rows are read for each badge. */
const LAST_ENTRY = `
  (SELECT json_object('at', at, 'kind', actor_kind, 'name', actor_name) FROM history INDEXED BY history_badge
    WHERE history.application_id = scanned.application_id AND history.badge = scanned.number
    ORDER BY id DESC LIMIT 1) AS lastEntry`;

/** As the index `badge_state` has it. */
const RECORDED_STATE = `(CASE WHEN ended_at IS NULL THEN state WHEN state = 'active' THEN 'expired'
  WHEN state = 'suspended' THEN 'expired' ELSE state END)`;

/** As the indexes `badge_page` and `badge_user_page` have it. */
const IS_LISTED = "(ended_at IS NOT NULL) = 0";

/**
 * A page of badges. One round trip.
 *
 * @param now milliseconds
 * @param withEntries whether each comes with the newest row of its history
 */
export function listBadges(
  db: Database,
  query: BadgePageQuery,
  now: number,
  withEntries: boolean,
): Promise<ScannedPage<ListedBadge>> {
  const { applicationId, after, isNewestFirst, perPage } = query;
  const scan: Scan<ListedBadge> = {
    table: "badge",
    ranges: (bind) => {
      const ofApplication = `application_id = ${bind(applicationId)} AND position IS NOT NULL`;
      const start = after === null ? "" : `AND position ${isNewestFirst ? "<" : ">"} ${bind(after)}`;
      return rangesOf(query, bind, now).map((range) => `${ofApplication} AND ${range} ${start}`);
    },
    order: `position ${isNewestFirst ? "DESC" : "ASC"}`,
    conditions: (bind) => conditionsOf(query, bind, now),
    columns: withEntries ? `${COLUMNS}, ${LAST_ENTRY}` : COLUMNS,
    rows: listedRows,
    perPage,
  };
  return scanPage(db, scan, scanLimit(perPage) - (withEntries ? perPage : 0));
}

/** Ranges of indexes that together have all badges in a state, and of other states as few as possible. */
function rangesOf({ state, userId }: BadgeFilter, bind: Bind, now: number): string[] {
  if (state === null || state === "active") {
    return [userId === null ? IS_LISTED : `user_id = ${bind(userId)} AND ${IS_LISTED}`];
  }
  const recorded = `${RECORDED_STATE} = '${state}' AND (state <> 'active' OR ended_at IS NOT NULL)`;
  // What expired in the last minute is not recorded yet.
  return state === "expired" ? [recorded, `expires_at <= ${bind(now)} AND ended_at IS NULL`] : [recorded];
}

function conditionsOf({ state, text, endsBefore }: BadgeFilter, bind: Bind, now: number): string[] {
  // The clock decides which of the rows recorded in these states are in them.
  const isByClock = state === "active" || state === "suspended";
  return [
    ...(isByClock ? [`state = '${state}' AND (expires_at IS NULL OR expires_at > ${bind(now)})`] : []),
    ...(text === null ? [] : [`(${containsText(["user_id", "name"], text, bind)})`]),
    ...(endsBefore === null ? [] : [`expires_at < ${bind(endsBefore)}`]),
  ];
}
