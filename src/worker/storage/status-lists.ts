import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { lastPosition } from "../../shared/storage/high-water.ts";
import type { Database } from "./database.ts";

/** The badges of a range of positions that are not active. Each is its position's offset from the range's first. */
export interface InactiveBadges {
  /** Revoked or replaced. */
  ended: number[];
  /** Suspended or expired. */
  paused: number[];
  /** The application's last position; 0 when it has issued no badge. */
  lastPosition: number;
}

/**
 * One row, made from the badges that are not active: those that the index `badge_status` has, and those whose expiry is not
 * recorded yet. INDEXED BY makes the statement fail where it would otherwise read active badges. Parameters: application ID,
 * first position, position after the last, milliseconds.
 */
export const SELECT_INACTIVE = `
  WITH inactive AS (
    SELECT position - ?2 AS list_offset, state IN ('revoked', 'replaced') AS is_ended
    FROM badge INDEXED BY badge_status
    WHERE application_id = ?1 AND position >= ?2 AND position < ?3
      AND position IS NOT NULL AND (state <> 'active' OR ended_at IS NOT NULL)
      AND (state <> 'active' OR expires_at <= ?4)
    UNION ALL
    SELECT position - ?2, 0
    FROM badge INDEXED BY badge_expiry
    WHERE expires_at IS NOT NULL AND ended_at IS NULL AND expires_at <= ?4
      AND application_id = ?1 AND position >= ?2 AND position < ?3
  )
  SELECT group_concat(list_offset) FILTER (WHERE is_ended) AS ended,
    group_concat(list_offset) FILTER (WHERE NOT is_ended) AS paused,
    ${lastPosition("?1")} AS lastPosition
  FROM inactive`;

const offsets = z
  .string()
  .nullable()
  .transform((text) => (text === null ? [] : text.split(",").map(Number)));

export const inactiveRow = z.tuple([z.object({ ended: offsets, paused: offsets, lastPosition: z.number() })]);

/**
 * @param range positions from `first` up to `end`, which is not in it
 * @param now milliseconds: badges whose end is past have expired, whether or not that is recorded yet
 */
export async function findInactive(
  db: Database,
  { applicationId, first, end }: { applicationId: ApplicationId; first: number; end: number },
  now: number,
): Promise<InactiveBadges> {
  const { results } = await db.run((_, d1) => d1.prepare(SELECT_INACTIVE).bind(applicationId, first, end, now).all());
  return inactiveRow.parse(results)[0];
}
