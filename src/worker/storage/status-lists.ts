import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { STATUS_LIST_ENTRIES } from "../../shared/limits.ts";
import type { Database } from "./database.ts";

interface StatusListKey {
  applicationId: ApplicationId;
  list: number;
}

/** Badges of a list whose state has changed, as the offsets of their positions from the list's first. */
interface ChangedBadges {
  active: number[];
  /** Revoked or replaced. */
  ended: number[];
  /** Suspended or expired. */
  paused: number[];
  /** The highest of their change numbers; 0 when there are none. */
  through: number;
  /** How many there are. */
  rows: number;
}

const IS_IN_LIST = `application_id = ?1 AND (position / ${STATUS_LIST_ENTRIES}) = ?2`;

const SELECT_SAVED = "SELECT lst FROM status_list WHERE application_id = ?1 AND list = ?2";

/** Since the list was saved. INDEXED BY makes the statement fail where it would otherwise read other badges. */
const SELECT_CHANGED = `
  SELECT group_concat(list_offset) FILTER (WHERE value = 'active') AS active,
    group_concat(list_offset) FILTER (WHERE value = 'ended') AS ended,
    group_concat(list_offset) FILTER (WHERE value = 'paused') AS paused,
    coalesce(max(status_change), 0) AS through, count(*) AS rows
  FROM (SELECT position % ${STATUS_LIST_ENTRIES} AS list_offset, status_change,
      CASE WHEN state IN ('revoked', 'replaced') THEN 'ended' WHEN state = 'suspended' OR ended_at IS NOT NULL THEN 'paused'
        ELSE 'active' END AS value
    FROM badge INDEXED BY badge_status
    WHERE ${IS_IN_LIST} AND status_change IS NOT NULL AND status_change >
      coalesce((SELECT through FROM status_list WHERE application_id = ?1 AND list = ?2), 0)
    ORDER BY status_change LIMIT ?3)`;

const SELECT_EXPIRED = `
  SELECT group_concat(position % ${STATUS_LIST_ENTRIES}) AS expired FROM badge INDEXED BY badge_status_expiry
  WHERE ${IS_IN_LIST} AND expires_at IS NOT NULL AND ended_at IS NULL AND expires_at <= ?3`;

const lastPositionOf = (isEnded: 0 | 1): string => `
  coalesce((SELECT position FROM badge WHERE application_id = ?1 AND (ended_at IS NOT NULL) = ${isEnded}
    AND position IS NOT NULL ORDER BY position DESC LIMIT 1), 0)`;

const SELECT_LAST_POSITION = `SELECT max(${lastPositionOf(0)}, ${lastPositionOf(1)}) AS lastPosition`;

const offsets = z
  .string()
  .nullable()
  .transform((text) => (text === null ? [] : text.split(",").map(Number)));

const savedRows = z.array(z.object({ lst: z.string() }));
const changedRows = z.tuple([
  z.object({ active: offsets, ended: offsets, paused: offsets, through: z.number(), rows: z.number() }),
]);
const expiredRows = z.tuple([z.object({ expired: offsets })]);
const lastPositionRows = z.tuple([z.object({ lastPosition: z.number() })]);

interface StatusRows {
  /** `lst` of the saved list; null: it was never saved. */
  saved: string | null;
  /** Since then, in the order of their changes. */
  changed: ChangedBadges;
  /** Offsets of badges that have expired without that being recorded. */
  expired: number[];
  /** The application's last position; 0 when it has issued no badge. */
  lastPosition: number;
}

/** What a list is built from. One round trip. @param now milliseconds @param limit of changed badges */
export async function readStatusRows(
  db: Database,
  { applicationId, list }: StatusListKey,
  now: number,
  limit: number,
): Promise<StatusRows> {
  const [saved, changed, expired, last] = await db.run((d1) =>
    d1.batch([
      d1.prepare(SELECT_SAVED).bind(applicationId, list),
      d1.prepare(SELECT_CHANGED).bind(applicationId, list, limit),
      d1.prepare(SELECT_EXPIRED).bind(applicationId, list, now),
      d1.prepare(SELECT_LAST_POSITION).bind(applicationId),
    ]),
  );
  return {
    saved: savedRows.parse(saved?.results)[0]?.lst ?? null,
    changed: changedRows.parse(changed?.results)[0],
    expired: expiredRows.parse(expired?.results)[0].expired,
    lastPosition: lastPositionRows.parse(last?.results)[0].lastPosition,
  };
}

/** Not when the change is gone: then D1 was restored meanwhile to a state that the list may not fit. */
const SAVE = `
  INSERT INTO status_list (application_id, list, through, lst)
  SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (
    SELECT 1 FROM badge INDEXED BY badge_status WHERE ${IS_IN_LIST} AND status_change IS NOT NULL AND status_change = ?3)
  ON CONFLICT (application_id, list) DO UPDATE SET through = excluded.through, lst = excluded.lst
  WHERE excluded.through > status_list.through`;

/** Saves a list for the next time that it is built; an older one never takes the place of a newer one. */
export async function saveStatusList(
  db: Database,
  { applicationId, list, through, lst }: StatusListKey & { through: number; lst: string },
): Promise<void> {
  await db.change(SAVE, [applicationId, list, through, lst]);
}
