import { and, eq, gt, lt, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ActorKind } from "../../shared/actor.ts";
import type { BadgeState } from "../../shared/badge-lifecycle/states.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { badge, history } from "../../shared/schema.ts";
import { SCANNED, type ScannedPage, scanLimit, scanPage, scanStatements } from "./bounded-scan.ts";
import type { Database } from "./database.ts";
import { byShape, type Placeholders } from "./statement.ts";
import { containsText, searchShape, searchValues } from "./text-search.ts";

/** Which of an application's badges a page lists (contract sections 4 and 24). */
interface BadgeFilter {
  userId: string | null;
  /** Null: active and suspended ones. */
  state: BadgeState | null;
  /** Part of the user ID or the name, in any case; null for all. */
  text: string | null;
  /** Milliseconds; null for badges with any end or none. */
  endsBefore: number | null;
}

export interface BadgePageQuery extends BadgeFilter {
  applicationId: ApplicationId;
  isNewestFirst: boolean;
  /** The ordinal after which the page starts; null for the first page. */
  after: number | null;
  perPage: number;
}

/** What decides the text of a page's statement. */
type Shape = Readonly<{
  state: BadgeState | null;
  isOfUser: boolean;
  /** See `searchShape`. */
  letters: number | null;
  hasEnd: boolean;
  isNewestFirst: boolean;
  withTimes: boolean;
  withHistory: boolean;
}>;

type Values = Placeholders<Omit<BadgePageQuery, "isNewestFirst" | "state" | "text" | "perPage"> & { now: number }>;

/** Time and actor of the newest row of a badge's history. */
interface LastHistoryRow {
  at: number;
  kind: ActorKind;
  name: string | null;
}

type BadgeRow = typeof badge.$inferSelect;

/** A badge of a list. Times are milliseconds. */
export type ListedBadge = Pick<BadgeRow, "number" | "name" | "metadata" | "state" | "startsAt" | "expiresAt"> &
  Partial<Pick<BadgeRow, "issuedAt" | "changedAt">> & {
    userId: string;
    ordinal: number;
    lastHistoryRow?: LastHistoryRow | null;
  };

const scanned = alias(badge, SCANNED);

const FIELDS = {
  number: scanned.number,
  // Columns of an issued badge; a list has only issued badges.
  userId: sql<string>`${scanned.userId}`,
  name: scanned.name,
  metadata: scanned.metadata,
  ordinal: sql<number>`${scanned.ordinal}`,
  state: scanned.state,
  startsAt: scanned.startsAt,
  expiresAt: scanned.expiresAt,
};

const TIMES = { issuedAt: scanned.issuedAt, changedAt: scanned.changedAt };

/** Reads two rows for each badge: one of the index, one of the table. */
const LAST_HISTORY_ROW = sql`(
  SELECT json_object('at', ${history.at}, 'kind', ${history.actorKind}, 'name', ${history.actorName})
  FROM ${history} INDEXED BY history_badge
  WHERE ${history.applicationId} = ${scanned.applicationId} AND ${history.badge} = ${scanned.number}
  ORDER BY ${history.id} DESC LIMIT 1)`.mapWith((json): LastHistoryRow | null => JSON.parse(String(json)));

/** The expression of the index `badge_state`. */
const RECORDED_STATE = sql`(CASE WHEN ${badge.endedAt} IS NULL THEN ${badge.state} WHEN ${badge.state} = 'active' THEN 'expired'
  WHEN ${badge.state} = 'suspended' THEN 'expired' ELSE ${badge.state} END)`;

/** Uses the expression of the indexes `badge_page` and `badge_user_page`. */
const IS_LISTED = sql`(${badge.endedAt} IS NOT NULL) = 0`;

const PAGES = byShape((shape: Shape) =>
  scanStatements((p: Values) => ({
    table: badge,
    ranges: rangesOf(shape, p).map((range) =>
      and(eq(badge.applicationId, p.applicationId), sql`${badge.ordinal} IS NOT NULL`, range, startOf(shape, p)),
    ),
    order: sql`${sql.identifier(badge.ordinal.name)} ${shape.isNewestFirst ? sql`DESC` : sql`ASC`}`,
    conditions: conditionsOf(shape, p),
    fields: {
      ...FIELDS,
      ...(shape.withTimes && TIMES),
      ...(shape.withHistory && { lastHistoryRow: LAST_HISTORY_ROW }),
    },
  })),
);

const startOf = ({ isNewestFirst }: Shape, { after }: Values): SQL =>
  isNewestFirst ? lt(badge.ordinal, after) : gt(badge.ordinal, after);

/** Index ranges that cover all badges in a state, with as few of other states as possible. */
function rangesOf({ state, isOfUser }: Shape, p: Values): (SQL | undefined)[] {
  if (state === null || state === "active") return [and(isOfUser ? eq(badge.userId, p.userId) : undefined, IS_LISTED)];
  const recorded = sql`${RECORDED_STATE} = ${state} AND (${badge.state} <> 'active' OR ${badge.endedAt} IS NOT NULL)`;
  // Expiries of the last minute are not recorded yet.
  return state === "expired"
    ? [recorded, sql`${badge.expiresAt} <= ${p.now} AND ${badge.endedAt} IS NULL`]
    : [recorded];
}

function conditionsOf({ state, letters, hasEnd }: Shape, p: Values): (SQL | undefined)[] {
  // The clock decides whether rows recorded in these states are in them now.
  const isByClock = state === "active" || state === "suspended";
  return [
    isByClock
      ? sql`${scanned.state} = ${state} AND (${scanned.expiresAt} IS NULL OR ${scanned.expiresAt} > ${p.now})`
      : undefined,
    containsText([scanned.userId, scanned.name], letters),
    hasEnd ? lt(scanned.expiresAt, p.endsBefore) : undefined,
  ];
}

/**
 * A page of badges. One round trip.
 *
 * @param now milliseconds
 * @param details `withTimes`: of issue and of the last change; `withHistory`: with the newest row of each badge's history
 */
export function listBadges(
  db: Database,
  query: BadgePageQuery,
  now: number,
  { withTimes, withHistory }: Pick<Shape, "withTimes" | "withHistory">,
): Promise<ScannedPage<ListedBadge>> {
  const { perPage, text, state, isNewestFirst } = query;
  const pages = PAGES({
    ...{ state, isNewestFirst, withTimes, withHistory, letters: searchShape(text) },
    isOfUser: query.userId !== null,
    hasEnd: query.endsBefore !== null,
  });
  // Ordinals begin with 1.
  const after = query.after ?? (isNewestFirst ? Number.MAX_SAFE_INTEGER : 0);
  const values = { ...query, ...searchValues(text), after, now };
  return scanPage(db, pages, values, perPage, scanLimit(perPage) - (withHistory ? perPage : 0));
}
