import { MAX_CASED_LETTERS } from "./limits/request-limits.ts";

/**
 * Lowers a text letter by letter, as the database lowers the columns it is compared with: only letters that
 * upper-casing turns back into the original, which excludes ẞ and İ. `toLowerCase` of a whole text would turn a final Σ
 * into ς.
 */
export const inLowerCase = (text: string): string =>
  Array.from(text, (letter) => {
    const lower = letter.toLowerCase();
    return lower.toUpperCase() === letter ? lower : letter;
  }).join("");

/**
 * The distinct letters of a text that are not ASCII and differ by case, in lower case. SQLite itself lowers only ASCII.
 */
export const casedLetters = (text: string): string[] => [
  ...new Set([...inLowerCase(text)].filter((letter) => letter > "\u007f" && letter.toUpperCase() !== letter)),
];

/** Whether a text can be searched for: its letters have to fit into the parameters of a statement. */
export const isSearchable = (text: string): boolean => casedLetters(text).length <= MAX_CASED_LETTERS;
