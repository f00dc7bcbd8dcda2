/** More is a job for `GET /v1/changes`, not for a spreadsheet. */
export const MOST_CSV_ROWS = 100_000;

/** A table as CSV (RFC 4180), with a byte order mark, by which Excel knows that it is UTF-8. */
export function csvOf(header: readonly string[], rows: readonly (readonly string[])[]): string {
  return `\ufeff${[header, ...rows].map((cells) => `${cells.map(csvCell).join(",")}\r\n`).join("")}`;
}

/**
 * Spreadsheets run cells that begin like a formula, and a user ID comes from outside: an apostrophe makes them texts. Where a comma
 * is the decimal sign, they begin a cell at each semicolon, too.
 */
function csvCell(text: string): string {
  const safe = text.replace(/(^|;)(?=[=+\-@\t\r])/g, "$1'");
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
