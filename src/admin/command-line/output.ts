import { styleText } from "node:util";
import { isoTime } from "../../shared/time.ts";
import { COLUMNS, forEnvironment } from "./shell.ts";

export type Output = ReturnType<typeof createOutput>;

/** @param environment that the command works on; undefined for local state */
export const createOutput = (json: boolean, environment: string | undefined) => ({
  /** Prints the result on standard output: as JSON with `--json`, else as text. Commands in it are for the environment. */
  result(value: unknown, text: () => string): void {
    const adapt = (line: string) => forEnvironment(line, environment);
    const adaptAdvice = (key: string, field: unknown) =>
      key === "advice" && typeof field === "string" ? adapt(field) : field;
    process.stdout.write(`${json ? JSON.stringify(value, adaptAdvice) : adapt(text().trimEnd())}\n`);
  },
  /** Prints a note or progress on standard error. */
  note(line: string): void {
    process.stderr.write(`${line}\n`);
  },
});

/** `styleText` respects NO_COLOR and leaves out colours where standard output is no terminal. */
export const bold = (text: string): string => styleText("bold", text, { stream: process.stdout });
export const faint = (text: string): string => styleText("dim", text, { stream: process.stdout });

/** Formats a time (milliseconds or ISO 8601) for a person: in UTC, to the second; `-` for null. */
export const formatTime = (time: number | string | null): string =>
  time === null
    ? "-"
    : isoTime(new Date(time).getTime())
        .replace("T", " ")
        .replace(/\.[0-9]+Z$/, "Z");

/** Replaces characters that could control a terminal: user IDs, metadata and receivers' responses come from outside. */
export const plain = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}]/gu, "?");

/** One line for each name and value, with the values aligned. Values that are null or undefined are left out. */
export function fieldLines(fields: Readonly<Record<string, string | number | null | undefined>>): string {
  const entries = Object.entries(fields).filter(([, value]) => value != null);
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries.map(([name, value]) => `  ${name.padEnd(width)}  ${plain(String(value))}`).join("\n");
}

/** A table with aligned columns, numbers on the right. @param empty the text for no rows */
export function tableLines(header: readonly string[], rows: readonly (readonly (string | number)[])[], empty: string) {
  if (rows.length === 0) return empty;
  const widths = header.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => columnsOf(plain(String(row[column] ?? ""))))),
  );
  const line = (cells: readonly (string | number)[]) =>
    cells
      .map((cell, column) => pad(cell, widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return [bold(line(header)), ...rows.map(line)].join("\n");
}

/** Characters two columns wide in a terminal (Unicode Annex 11), as far as they occur in names and device models. */
const WIDE =
  /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u;
const NO_WIDTH = /\p{Mark}/u;

const columnsOf = (text: string): number =>
  [...text].reduce((sum, one) => sum + (NO_WIDTH.test(one) ? 0 : WIDE.test(one) ? 2 : 1), 0);

/** Cuts a text to this many columns. */
export function shorten(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  let kept = "";
  for (const one of text) {
    if (columnsOf(kept + one) > columns - 1) break;
    kept += one;
  }
  return `${kept}…`;
}

const padded = (text: string, columns: number): string => text + " ".repeat(Math.max(0, columns - columnsOf(text)));

const LABEL_COLUMNS = 28;
const COUNT_COLUMNS = 12;

/** Counts with bars, at most 80 columns wide. The bars are left out where standard output is no terminal. */
export function barLines(counts: readonly { label: string; count: number }[]): string {
  const most = Math.max(1, ...counts.map(({ count }) => count));
  const room = COLUMNS - LABEL_COLUMNS - COUNT_COLUMNS - 4;
  return counts
    .map(({ label, count }) => {
      const bar = process.stdout.isTTY ? "█".repeat(Math.round((count / most) * room)) || (count > 0 ? "▏" : "") : "";
      const start = `  ${padded(shorten(plain(label), LABEL_COLUMNS), LABEL_COLUMNS)}${formatNumber(count).padStart(COUNT_COLUMNS)}`;
      return `${start}  ${faint(bar)}`.trimEnd();
    })
    .join("\n");
}

/** `1 value`, `2 values`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** A count with thousands separators. */
export const formatNumber = (count: number): string => count.toLocaleString("en-US");

function pad(cell: string | number, width: number): string {
  const text = plain(String(cell));
  return typeof cell === "number" ? text.padStart(width) : padded(text, width);
}
