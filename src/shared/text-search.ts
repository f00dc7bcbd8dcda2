import { MAX_CASED_LETTERS } from "./limits/request-limits.ts";

/**
 * A text in lower case, letter by letter, as a column is compared: of a whole word, JavaScript lowers a final Σ to ς, and İ to two
 * letters.
 */
export const inLowerCase = (text: string): string =>
  Array.from(text, (letter) => (letter.toLowerCase().length === letter.length ? letter.toLowerCase() : letter)).join(
    "",
  );

/**
 * Letters of a text that are not ASCII and differ by case, each once, in lower case: SQLite itself lowers only ASCII.
 */
export const casedLetters = (text: string): string[] => [
  ...new Set([...inLowerCase(text)].filter((letter) => letter > "\u007f" && letter.toUpperCase() !== letter)),
];

/** Whether a text can be searched for: its letters have to fit into the parameters of a statement. */
export const isSearchable = (text: string): boolean => casedLetters(text).length <= MAX_CASED_LETTERS;
