import { sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_DELTA_CHANGES } from "../../shared/limits/live-limits.ts";
import { STATUS_LIST_ENTRIES } from "../../shared/limits/status-list-limits.ts";
import { badge } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { headOf, SELECT_HEAD } from "./readable.ts";
import { type Placeholders, query, statement } from "./statement.ts";
import { isInList } from "./status-lists.ts";

interface ListRange {
  applicationId: ApplicationId;
  list: number;
  after: number;
}

/**
 * The newest changes of one list. Without the index, INDEXED BY makes the statement fail instead of reading other
 * badges.
 */
const SELECT_CHANGED = statement((p: Placeholders<ListRange>) =>
  query(
    {
      ordinal: sql<number>`${badge.ordinal}`,
      change: sql<number>`${badge.statusChange}`,
      state: badge.state,
      expiresAt: badge.expiresAt,
      endedAt: badge.endedAt,
    },
    (fields) => sql`SELECT ${fields} FROM ${badge} INDEXED BY badge_status
      WHERE ${isInList(p)} AND ${badge.statusChange} IS NOT NULL AND ${badge.statusChange} > ${p.after}
      ORDER BY ${badge.statusChange} DESC LIMIT ${MAX_DELTA_CHANGES + 1}`,
  ),
);

/** A badge whose state has changed. */
export type StatusChange = ReturnType<typeof SELECT_CHANGED.rows>[number];

export interface StatusChanges {
  /** Whether D1 may be read: after a restore it lacks changes until the allocator has sent them again. */
  isReadable: boolean;
  lastOrdinal: number;
  /** The last change that D1 has. */
  lastChange: number;
  /** The feed's epoch. Another epoch means that the badges were replaced (contract section 21). */
  epoch: string;
  /** Newest first; one more than a delta takes, if more follow. */
  changes: StatusChange[];
}

/**
 * The newest changes of status after a change number, of all lists, as one state of D1. One round trip to the primary,
 * or two.
 *
 * @param lists the known number of lists
 * @throws Unavailable
 */
export async function readStatusChanges(
  db: Database,
  applicationId: ApplicationId,
  after: number,
  lists: number,
): Promise<StatusChanges> {
  const ranges = Array.from({ length: lists }, (_, list) => ({ applicationId, list, after }));
  const [heads, ...results] = await db.atPrimary((session) =>
    session.batch([
      SELECT_HEAD.bind(session, { applicationId }),
      ...ranges.map((range) => SELECT_CHANGED.bind(session, range)),
    ]),
  );
  const { isReadable, ...head } = headOf(heads);
  const needed = Math.floor(head.lastOrdinal / STATUS_LIST_ENTRIES) + 1;
  if (needed > lists) return readStatusChanges(db, applicationId, after, needed);
  const changes = results.flatMap((result) => SELECT_CHANGED.rows(result));
  changes.sort((one, other) => other.change - one.change);
  return { ...head, isReadable: isReadable === 1, changes: changes.slice(0, MAX_DELTA_CHANGES + 1) };
}
