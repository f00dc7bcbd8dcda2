import { and, desc, lte, ne, type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../shared/identifiers.ts";
import { DEFAULT_RANGE_SIZE, FIRST_DEFAULT_NUMBER, MAX_BADGE_NUMBER } from "../shared/limits.ts";
import type { NumberRange } from "../shared/number-range.ts";
import { application } from "../shared/schema.ts";
import type { Orm } from "./platform/database.ts";
import { ADMIN } from "./shell.ts";

/** Written into the SQL, not bound: D1 binds JavaScript numbers as REAL, whose division is not an integer one. */
const FIRST = sql.raw(String(FIRST_DEFAULT_NUMBER));

const SIZE = sql.raw(String(DEFAULT_RANGE_SIZE));

/**
 * Whether `first`..`last` overlaps a range of another application. Ranges never overlap, so of those that start at or
 * below `last` the one that starts highest also ends last: if it ends before `first`, all do.
 *
 * @param except application whose own range is left out
 */
export function overlapsAnother(first: SQL, last: SQL, except: string): SQL {
  return sql`coalesce((SELECT neighbour.last_number FROM application AS neighbour
    WHERE neighbour.first_number <= ${last} AND neighbour.id <> ${except}
    ORDER BY neighbour.first_number DESC LIMIT 1), 0) >= ${first}`;
}

/** A query that returns the range (`first_number`, `last_number`) if it is free, and no row otherwise. */
export function explicitRange(range: NumberRange, except: string): SQL {
  const first = sql`${range.first}`;
  const last = sql`${range.last}`;
  return sql`SELECT ${first} AS first_number, ${last} AS last_number WHERE NOT ${overlapsAnother(first, last, except)}`;
}

/**
 * A query that returns the lowest free block of the default size, or no row. The lowest one starts at the first default
 * number or is the first block after some range, so only those are tried.
 *
 * @param highest the block's last number is not above it
 */
export function defaultRange(highest = MAX_BADGE_NUMBER): SQL {
  const last = sql`block.first + ${SIZE} - 1`;
  return sql`SELECT block.first AS first_number, ${last} AS last_number
    FROM (SELECT ${FIRST} AS first UNION
      SELECT ${FIRST} + ((last_number - ${FIRST}) / ${SIZE} + 1) * ${SIZE} FROM application
      WHERE last_number >= ${FIRST}) AS block
    WHERE ${last} <= ${sql.raw(String(highest))} AND NOT ${overlapsAnother(sql`block.first`, last, "")}
    ORDER BY block.first LIMIT 1`;
}

/** The application whose range starts highest at or below a number. */
export function selectNeighbour(orm: Orm, number: number, except: ApplicationId | null) {
  return orm
    .select()
    .from(application)
    .where(and(lte(application.firstNumber, number), except === null ? undefined : ne(application.id, except)))
    .orderBy(desc(application.firstNumber))
    .limit(1);
}

export function overlapLine(range: NumberRange, other: { id: string } & OwnedNumbers): string {
  return `Numbers ${shownRange(range)} overlap application ${other.id} (${shownRange(rangeOf(other))}): choose others, see ${ADMIN} application list.`;
}

/** The numbers of an application, as its row and the commands name them. */
interface OwnedNumbers {
  firstNumber: number;
  lastNumber: number;
}

export const rangeOf = ({ firstNumber: first, lastNumber: last }: OwnedNumbers): NumberRange => ({ first, last });

export const shownRange = ({ first, last }: NumberRange): string => `${first}-${last}`;
