import type { D1Database, D1PreparedStatement, D1Result } from "@cloudflare/workers-types";
import * as z from "zod";
import type { ApplicationId } from "../identifiers.ts";

/**
 * Positions and change numbers of an application's badges (contract sections 4 and 13). Both are assigned inside the D1
 * transaction that writes the badge, as one more than the last; D1 runs one transaction at a time, so their order is the
 * order of commits, and a cursor on them skips nothing.
 */

/** The highest position and change number that the allocator, or a statement, has seen. */
export interface HighWater {
  position: number;
  change: number;
}

export const NO_BADGE_YET: HighWater = { position: 0, change: 0 };

/** @returns the change number of a row of `badge`, as the SQL expression that the index `badge_change` has */
export const changeOf = (table: string): string =>
  `(CASE WHEN ${table}.change IS NULL THEN ${table}.position ELSE ${table}.change END)`;

/** @returns the application's last change number, as an SQL expression; 0 when it has issued no badge */
export const lastChange = (applicationId: string): string => `
  coalesce((SELECT ${changeOf("newest")} FROM badge AS newest
    WHERE newest.application_id = ${applicationId} AND newest.position IS NOT NULL
    ORDER BY ${changeOf("newest")} DESC LIMIT 1), 0)`;

/** @returns the application's last position, as an SQL expression; 0 when it has issued no badge */
export const lastPosition = (applicationId: string): string =>
  `max(${[0, 1].map((isEnded) => lastPositionOf(applicationId, isEnded)).join(", ")})`;

const lastPositionOf = (applicationId: string, isEnded: number): string => `
  coalesce((SELECT newest.position FROM badge AS newest
    WHERE newest.application_id = ${applicationId} AND (newest.ended_at IS NOT NULL) = ${isEnded}
      AND newest.position IS NOT NULL
    ORDER BY newest.position DESC LIMIT 1), 0)`;

/**
 * First statement of every batch that issues badges or changes their state. The allocator remembers the highest numbers it has
 * written; if D1's are lower, D1 was restored to an older state, and the feed's cursors expire at once. Parameters: application
 * ID, position, change number.
 */
const RENEW_EPOCH = `
  UPDATE application SET feed_epoch = lower(hex(randomblob(16)))
  WHERE id = ?1 AND (${lastPosition("?1")} < ?2 OR ${lastChange("?1")} < ?3)`;

export function renewEpochIfRestored(
  d1: Pick<D1Database, "prepare">,
  applicationId: ApplicationId,
  seen: HighWater,
): D1PreparedStatement {
  return d1.prepare(RENEW_EPOCH).bind(applicationId, seen.position, seen.change);
}

const numberedRows = z.array(z.object({ position: z.number(), change: z.number() }));

/** The highest numbers among the rows that a statement returned. */
export function highestOf(result: D1Result | undefined): HighWater {
  const rows = numberedRows.parse(result?.results ?? []);
  return {
    position: Math.max(0, ...rows.map(({ position }) => position)),
    change: Math.max(0, ...rows.map(({ change }) => change)),
  };
}
