/** For more, use `GET /v1/changes`, not a spreadsheet. */
export const MOST_CSV_ROWS = 100_000;

/** A table as CSV (RFC 4180), with a byte order mark that tells Excel that it is UTF-8. */
export function csvOf(header: readonly string[], rows: readonly (readonly string[])[]): string {
  return `\ufeff${[header, ...rows].map((cells) => `${cells.map(csvCell).join(",")}\r\n`).join("")}`;
}

/**
 * The position before what begins a formula (OWASP: CSV Injection): at the beginning of a text or after anything that begins a
 * cell, possibly after quotes or blanks, which a spreadsheet removes. Excel reads full-width signs like the others.
 */
const FORMULA_START = /(?<=^|[;,\t\r\n|])(?=["'\s\p{Cf}]*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r])/gu;

/**
 * Spreadsheets run cells that begin like a formula, and a user ID comes from outside. An apostrophe turns such a cell into
 * text. Where the comma is the decimal sign, each semicolon begins a cell too, even inside quotes.
 */
function csvCell(text: string): string {
  const safe = text.replace(FORMULA_START, "'");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Lets the browser save a file. */
export function saveFile(name: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
