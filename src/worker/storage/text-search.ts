import { type Column, or, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { casedLetters, inLowerCase } from "../../shared/text-search.ts";

/** Values that a statement with `containsText` binds: the text, and letters that SQLite cannot lower. */
type SearchValues = Readonly<Record<`search${string}`, string>>;

/**
 * The number of the text's letters that SQLite cannot lower, which is part of a statement's shape. Null without a
 * search.
 */
export const searchShape = (text: string | null): number | null => (text === null ? null : casedLetters(text).length);

export function searchValues(text: string | null): SearchValues {
  if (text === null) return {};
  const letters = casedLetters(text).flatMap((lower, place) => [
    [upperName(place), lower.toUpperCase()],
    [lowerName(place), lower],
  ]);
  return { ...Object.fromEntries(letters), [TEXT]: inLowerCase(text) };
}

const TEXT = "search";
const upperName = (place: number) => `search ${place} upper`;
const lowerName = (place: number) => `search ${place} lower`;

/**
 * Whether one of these columns contains a text, in any case. SQLite lowers only ASCII, so the text's other letters are
 * replaced one by one. (In D1, LIKE takes patterns of at most 50 bytes.)
 *
 * @param letters see `searchShape`; `searchValues` returns the values to bind
 */
export function containsText(columns: readonly (Column | SQL)[], letters: number | null): SQL | undefined {
  if (letters === null) return undefined;
  const lowered = (column: SQLWrapper) =>
    Array.from({ length: letters }).reduce<SQL>(
      (folded, _, place) =>
        sql`replace(${folded}, ${sql.placeholder(upperName(place))}, ${sql.placeholder(lowerName(place))})`,
      sql`lower(${column})`,
    );
  return or(...columns.map((column) => sql`instr(${lowered(column)}, ${sql.placeholder(TEXT)}) > 0`));
}
