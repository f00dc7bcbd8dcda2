import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { NumberRange } from "../../shared/number-range.ts";
import { application } from "../../shared/schema.ts";
import { ADMIN } from "../command-line/shell.ts";

const other = alias(application, "other");

/**
 * Whether `first`..`last` overlaps the range of another application of the home: the second line of defence behind the register.
 *
 * @param except the application whose own range does not count
 */
export const overlapsAnother = (first: SQL, last: SQL, except: ApplicationId): SQL =>
  sql`EXISTS (SELECT 1 FROM ${application} AS ${other}
    WHERE ${other.firstNumber} <= ${last} AND ${other.lastNumber} >= ${first} AND ${other.id} <> ${except})`;

/** The numbers of an application, or those registered for one. */
export interface OwnedRange {
  id: ApplicationId;
  firstNumber: number;
  lastNumber: number;
}

export const overlapLine = (wanted: string, other: OwnedRange): string =>
  `Numbers ${wanted} overlap application ${other.id} (${formatRange(rangeOf(other))}): choose others, see ${ADMIN} application list.`;

export const rangeOf = ({ firstNumber: first, lastNumber: last }: Omit<OwnedRange, "id">): NumberRange => ({
  first,
  last,
});

export const formatRange = ({ first, last }: NumberRange): string => `${first}-${last}`;
