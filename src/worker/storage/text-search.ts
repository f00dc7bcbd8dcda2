import { casedLetters } from "../../shared/text-search.ts";
import type { Bind } from "./bounded-scan.ts";

/**
 * Whether one of these columns has a text in it, in any case, as an SQL condition. SQLite lowers ASCII alone, so those other letters
 * that the text has are replaced one by one. (LIKE takes patterns of 50 bytes at most in D1.)
 *
 * @param bind binds a value and returns its parameter
 */
export function containsText(columns: readonly string[], text: string, bind: Bind): string {
  const letters = casedLetters(text).map((lower) => `${bind(lower.toUpperCase())}, ${bind(lower)}`);
  const lowered = (column: string) =>
    letters.reduce((folded, pair) => `replace(${folded}, ${pair})`, `lower(${column})`);
  const wanted = bind(text.toLowerCase());
  return columns.map((column) => `instr(${lowered(column)}, ${wanted}) > 0`).join(" OR ");
}
