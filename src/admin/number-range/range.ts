import { type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { DEFAULT_RANGE_SIZE, FIRST_DEFAULT_NUMBER, MAX_BADGE_NUMBER } from "../../shared/limits.ts";
import type { NumberRange } from "../../shared/number-range.ts";
import { ADMIN } from "../command-line/shell.ts";

/** Written into the SQL, not bound: D1 binds JavaScript numbers as REAL, whose division is not an integer one. */
const FIRST = sql.raw(String(FIRST_DEFAULT_NUMBER));

const SIZE = sql.raw(String(DEFAULT_RANGE_SIZE));

/** Numbers that are taken, as one home knows them: a query that returns `id`, `first_number` and `last_number`. */
export type Taken = SQL;

/** The ranges of a home's applications. */
export const OF_APPLICATIONS: Taken = sql`SELECT id, first_number, last_number FROM application`;

/**
 * Numbers taken according to home 1: those in the register, and those of its own applications, which an older release of this script may have created
 * without registering them.
 */
export const REGISTERED: Taken = sql`SELECT application_id AS id, first_number, last_number FROM number_range
  UNION ALL ${OF_APPLICATIONS}`;

/**
 * Whether `first`..`last` overlaps the range of another application.
 *
 * @param except application whose own range is left out
 */
export const overlapsAnother = (taken: Taken, first: SQL, last: SQL, except: ApplicationId): SQL =>
  sql`EXISTS (SELECT 1 FROM (${taken}) AS taken
    WHERE taken.first_number <= ${last} AND taken.last_number >= ${first} AND taken.id <> ${except})`;

/** A query that returns the range (`first_number`, `last_number`) if it is free, and no row otherwise. */
export function explicitRange(taken: Taken, range: NumberRange, except: ApplicationId): SQL {
  const first = sql`${range.first}`;
  const last = sql`${range.last}`;
  const isFree = sql`NOT ${overlapsAnother(taken, first, last, except)}`;
  return sql`SELECT ${first} AS first_number, ${last} AS last_number WHERE ${isFree}`;
}

/**
 * A query that returns the lowest free block of the default size, or no row. It goes through the gaps between ranges: each
 * begins after the highest number so far and ends before the range that starts next. Ranges may overlap in the register,
 * after a restoration.
 *
 * @param highest the block's last number is not above it
 */
export function defaultRange(taken: Taken, except: ApplicationId, highest = MAX_BADGE_NUMBER): SQL {
  const last = sql`block.first + ${SIZE} - 1`;
  return sql`SELECT block.first AS first_number, ${last} AS last_number
    FROM (SELECT ${FIRST} + (gap.reach - ${FIRST} + ${SIZE}) / ${SIZE} * ${SIZE} AS first, gap.next_first
      FROM (SELECT max(last_number) OVER so_far AS reach,
          lead(first_number, 1, ${sql.raw(String(MAX_BADGE_NUMBER))} + 1) OVER so_far AS next_first
        FROM (SELECT '' AS id, 0 AS first_number, ${FIRST} - 1 AS last_number UNION ALL ${taken})
        WHERE id <> ${except}
        WINDOW so_far AS (ORDER BY first_number ROWS UNBOUNDED PRECEDING)) AS gap) AS block
    WHERE ${last} < block.next_first AND ${last} <= ${sql.raw(String(highest))}
    ORDER BY block.first LIMIT 1`;
}

/** The numbers of an application, or those registered for one. */
export interface OwnedRange {
  id: ApplicationId;
  firstNumber: number;
  lastNumber: number;
}

export const overlapLine = (range: NumberRange, other: OwnedRange): string =>
  `Numbers ${shownRange(range)} overlap application ${other.id} (${shownRange(rangeOf(other))}): choose others, see ${ADMIN} application list.`;

export const rangeOf = ({ firstNumber: first, lastNumber: last }: Omit<OwnedRange, "id">): NumberRange => ({
  first,
  last,
});

export const shownRange = ({ first, last }: NumberRange): string => `${first}-${last}`;
