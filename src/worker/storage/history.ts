import { and, eq, gte, lt, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { type HistoryAction, historyIdPrefix } from "../../shared/history.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { history } from "../../shared/schema.ts";
import { AFTER_ALL_IDS, SCANNED, type ScannedPage, scanPage, scanStatements } from "./bounded-scan.ts";
import type { Database } from "./database.ts";
import { byShape, type Placeholders } from "./statement.ts";

/** A row of the history. `at` is milliseconds, `detail` JSON. */
export type HistoryRow = Omit<typeof history.$inferSelect, "applicationId">;

/** Filters of a page; null for all rows. */
export interface HistoryQuery {
  applicationId: ApplicationId;
  badge: number | null;
  userId: string | null;
  /** At or after this time, milliseconds. */
  since: number | null;
  /** Before this time, milliseconds. */
  until: number | null;
  actorName: string | null;
  action: HistoryAction | null;
  /** ID of the last row of the previous page. */
  after: string | null;
  perPage: number;
}

/** The filters that are set, except those of time. */
type Shape = Readonly<Record<"badge" | "userId" | "actorName" | "action", boolean>>;

/** IDs sort by time, so a page is a range of them: from one, and before another. */
interface Values extends Pick<HistoryQuery, "applicationId" | "badge" | "userId" | "actorName" | "action"> {
  from: string;
  before: string;
}

const scanned = alias(history, SCANNED);

const PAGES = byShape((set: Shape) =>
  scanStatements((p: Placeholders<Values>) => ({
    table: indexedTable(set),
    ranges: [
      and(
        eq(history.applicationId, p.applicationId),
        set.badge ? eq(history.badge, p.badge) : undefined,
        set.userId && !set.badge ? eq(history.userId, p.userId) : undefined,
        gte(history.id, p.from),
        lt(history.id, p.before),
      ),
    ],
    order: sql`${sql.identifier(history.id.name)} DESC`,
    conditions: conditionsOf(set, p),
    fields: {
      id: scanned.id,
      at: scanned.at,
      action: scanned.action,
      actorKind: scanned.actorKind,
      actorName: scanned.actorName,
      badge: scanned.badge,
      userId: scanned.userId,
      requestId: scanned.requestId,
      reason: scanned.reason,
      detail: scanned.detail,
    },
  })),
);

/** Without INDEXED BY, SQLite would read the whole history of the application in the wanted order. */
function indexedTable({ badge, userId }: Shape): SQLWrapper {
  if (badge) return sql`${history} INDEXED BY history_badge`;
  return userId ? sql`${history} INDEXED BY history_user` : history;
}

/** Conditions without an index. A badge number has had few users; a page that is filtered by actor or action may end early. */
const conditionsOf = (set: Shape, p: Placeholders<Values>): (SQL | undefined)[] => [
  set.badge && set.userId ? eq(scanned.userId, p.userId) : undefined,
  set.actorName ? eq(scanned.actorName, p.actorName) : undefined,
  set.action ? eq(scanned.action, p.action) : undefined,
];

/** An application's history, newest first. One round trip. */
export function listHistory(db: Database, query: HistoryQuery): Promise<ScannedPage<HistoryRow>> {
  const { applicationId, badge, userId, actorName, action, since, until, after, perPage } = query;
  const pages = PAGES({
    badge: badge !== null,
    userId: userId !== null,
    actorName: actorName !== null,
    action: action !== null,
  });
  const from = historyIdPrefix(since ?? 0);
  const end = until === null ? AFTER_ALL_IDS : historyIdPrefix(until);
  // One upper bound: SQLite begins at the first of two.
  const before = after !== null && after < end ? after : end;
  return scanPage(db, pages, { applicationId, badge, userId, actorName, action, from, before }, perPage);
}
