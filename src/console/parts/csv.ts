/** More is a job for `GET /v1/changes`, not for a spreadsheet. */
export const MOST_CSV_ROWS = 100_000;

/** A table as CSV (RFC 4180), with a byte order mark, by which Excel knows that it is UTF-8. */
export function csvOf(header: readonly string[], rows: readonly (readonly string[])[]): string {
  return `\ufeff${[header, ...rows].map((cells) => `${cells.map(csvCell).join(",")}\r\n`).join("")}`;
}

/**
 * What begins a formula (OWASP: CSV Injection), behind quotes or blanks that a spreadsheet takes away, at the beginning of a text or
 * behind anything that begins a cell. Full-width signs count: Excel reads them as the others.
 */
const FORMULA_START = /(?<=^|[;,\t\r\n|])(?=["'\s\p{Cf}]*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r])/gu;

/**
 * Spreadsheets run cells that begin like a formula, and a user ID comes from outside: an apostrophe makes them texts. Where a comma
 * is the decimal sign, they begin a cell at each semicolon, too, and know nothing of the quotes around the whole.
 */
function csvCell(text: string): string {
  const safe = text.replace(FORMULA_START, "'");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Has the browser save a file. */
export function saveFile(name: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
