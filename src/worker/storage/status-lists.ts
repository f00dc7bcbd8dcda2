import { and, eq, type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { STATUS_LIST_ENTRIES } from "../../shared/limits/status-list-limits.ts";
import { badge, statusList } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { headOf, requireReadable, SELECT_HEAD } from "./readable.ts";
import { orm, type Placeholders, query, statement } from "./statement.ts";

interface StatusListKey {
  applicationId: ApplicationId;
  list: number;
}

/** Badges of a list whose state has changed, as the offsets of their ordinals from the list's first. */
interface ChangedBadges {
  active: number[];
  /** Revoked or replaced. */
  ended: number[];
  /** Suspended or expired. */
  paused: number[];
  /** The highest of their change numbers; 0 without changes. */
  through: number;
  /** The number of changed badges. */
  rows: number;
}

/** Uses the expression of the indexes `badge_status` and `badge_status_expiry`. */
export const isInList = ({ applicationId, list }: Placeholders<StatusListKey>): SQL =>
  sql`${badge.applicationId} = ${applicationId} AND (${badge.ordinal} / ${STATUS_LIST_ENTRIES}) = ${list}`;

const isList = ({ applicationId, list }: Placeholders<StatusListKey>) =>
  and(eq(statusList.applicationId, applicationId), eq(statusList.list, list));

const SELECT_SAVED = statement((p: Placeholders<StatusListKey>) =>
  orm.select({ lst: statusList.lst }).from(statusList).where(isList(p)),
);

const offsetsOf = (joined: SQL): SQL<number[] | null> =>
  sql`${joined}`.mapWith((text): number[] => String(text).split(",").map(Number));

const offsetsIn = (value: string) => offsetsOf(sql`group_concat(list_offset) FILTER (WHERE value = ${value})`);

const statusChange = sql.identifier(badge.statusChange.name);

/**
 * Changes since the list was saved. Without the index, INDEXED BY makes the statement fail instead of reading other
 * badges.
 */
const SELECT_CHANGED = statement((p: Placeholders<StatusListKey & { limit: number }>) =>
  query(
    {
      active: offsetsIn("active"),
      ended: offsetsIn("ended"),
      paused: offsetsIn("paused"),
      through: sql<number>`coalesce(max(${statusChange}), 0)`,
      rows: sql<number>`count(*)`,
    },
    (fields) => sql`SELECT ${fields} FROM (
      SELECT ${badge.ordinal} % ${STATUS_LIST_ENTRIES} AS list_offset, ${badge.statusChange} AS ${statusChange},
        CASE WHEN ${badge.state} IN ('revoked', 'replaced') THEN 'ended'
          WHEN ${badge.state} = 'suspended' OR ${badge.endedAt} IS NOT NULL THEN 'paused' ELSE 'active' END AS value
      FROM ${badge} INDEXED BY badge_status
      WHERE ${isInList(p)} AND ${badge.statusChange} IS NOT NULL AND ${badge.statusChange} >
        coalesce(${orm.select({ through: statusList.through }).from(statusList).where(isList(p))}, 0)
      ORDER BY ${badge.statusChange} LIMIT ${p.limit})`,
  ),
);

const SELECT_EXPIRED = statement((p: Placeholders<StatusListKey & { now: number }>) =>
  query(
    { expired: offsetsOf(sql`group_concat(${badge.ordinal} % ${STATUS_LIST_ENTRIES})`) },
    (fields) => sql`SELECT ${fields} FROM ${badge} INDEXED BY badge_status_expiry
      WHERE ${isInList(p)} AND ${badge.expiresAt} IS NOT NULL AND ${badge.endedAt} IS NULL AND ${badge.expiresAt} <= ${p.now}`,
  ),
);

interface StatusRows {
  /** `lst` of the saved list; null if it was never saved. */
  saved: string | null;
  /** Changes since then, in their order. */
  changed: ChangedBadges;
  /** Offsets of badges whose expiry is not recorded yet. */
  expired: number[];
  /** The application's last ordinal; 0 when it has issued no badge. */
  lastOrdinal: number;
  /** The application's last change, which these rows include. */
  lastChange: number;
}

/**
 * The rows that a list is built from. One round trip.
 *
 * @param now milliseconds
 * @param limit of changed badges
 * @throws Unavailable while D1 lacks changes
 */
export async function readStatusRows(
  db: Database,
  key: StatusListKey,
  now: number,
  limit: number,
): Promise<StatusRows> {
  const [savedResult, changedResult, expiredResult, headResult] = await db.run((d1) =>
    d1.batch([
      SELECT_SAVED.bind(d1, key),
      SELECT_CHANGED.bind(d1, { ...key, limit }),
      SELECT_EXPIRED.bind(d1, { ...key, now }),
      SELECT_HEAD.bind(d1, key),
    ]),
  );
  const [changed] = SELECT_CHANGED.rows(changedResult);
  if (!changed) throw new Error("an aggregate has no row");
  const head = headOf(headResult);
  requireReadable(head);
  const { active, ended, paused, through, rows } = changed;
  return {
    saved: SELECT_SAVED.rows(savedResult)[0]?.lst ?? null,
    changed: { active: active ?? [], ended: ended ?? [], paused: paused ?? [], through, rows },
    expired: SELECT_EXPIRED.rows(expiredResult)[0]?.expired ?? [],
    lastOrdinal: head.lastOrdinal,
    lastChange: head.lastChange,
  };
}

/** Skipped if the list's last change is gone, because D1 was restored meanwhile and the list may not match its state. */
const SAVE = statement((p: Placeholders<StatusListKey & { through: number; lst: string }>) => {
  const { applicationId, list, through, lst } = statusList;
  const columns = sql.join(
    [applicationId, list, through, lst].map(({ name }) => sql.identifier(name)),
    sql`, `,
  );
  return sql`INSERT INTO ${statusList} (${columns})
    SELECT ${p.applicationId}, ${p.list}, ${p.through}, ${p.lst} WHERE EXISTS (
      SELECT 1 FROM ${badge} INDEXED BY badge_status
      WHERE ${isInList(p)} AND ${badge.statusChange} IS NOT NULL AND ${badge.statusChange} = ${p.through})
    ON CONFLICT (${sql.identifier(applicationId.name)}, ${sql.identifier(list.name)})
    DO UPDATE SET ${sql.identifier(through.name)} = excluded.${sql.identifier(through.name)},
      ${sql.identifier(lst.name)} = excluded.${sql.identifier(lst.name)}
    WHERE excluded.${sql.identifier(through.name)} > ${through}`;
});

/** Saves a list for its next build. An older list never replaces a newer one. */
export async function saveStatusList(
  db: Database,
  list: StatusListKey & { through: number; lst: string },
): Promise<void> {
  await db.write(SAVE, list);
}
