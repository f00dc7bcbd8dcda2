/** A visitor of a list that was pasted. */
export interface Guest {
  name: string;
  host: string;
  /** Empty: anybody who has the code may claim it. */
  userId: string;
}

const MOST_GUESTS = 100;
const LONGEST_NAME = 100;

/**
 * Reads a table that was copied from a spreadsheet, or CSV: name, host and user ID, in this order, or as its first line names
 * them. The last two may be missing.
 */
export function readGuests(text: string): { guests: Guest[]; problem: string | null } {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const separator = ["\t", ";", ","].find((each) => lines[0]?.includes(each)) ?? "\t";
  const rows = lines.map((line) => cellsOf(line, separator));
  const [first = []] = rows;
  const isHeader = first.some((cell) => /^(name|visitor)$/i.test(cell));
  const column = (pattern: RegExp, otherwise: number) =>
    isHeader ? first.findIndex((cell) => pattern.test(cell)) : otherwise;
  const [name, host, userId] = [
    column(/^(name|visitor)$/i, 0),
    column(/^(host|visits)$/i, 1),
    column(/^user( ?id)?$/i, 2),
  ];
  const guests = rows.slice(isHeader ? 1 : 0).map((cells) => ({
    name: cells[name] ?? "",
    host: cells[host] ?? "",
    userId: cells[userId] ?? "",
  }));
  return { guests, problem: problemOf(guests) };
}

function cellsOf(line: string, separator: string): string[] {
  const cells: string[] = [];
  for (const part of line.split(separator)) {
    const last = cells.at(-1);
    if (last !== undefined && isUnfinished(last)) cells[cells.length - 1] = last + separator + part;
    else cells.push(part.trim());
  }
  return cells.map((cell) => (cell.startsWith('"') ? cell.replace(/^"(.*)"$/, "$1").replaceAll('""', '"') : cell));
}

/** A quoted cell may have separators in it (RFC 4180). */
const isUnfinished = (cell: string): boolean => cell.startsWith('"') && cell.split('"').length % 2 === 0;

function problemOf(guests: readonly Guest[]): string | null {
  if (guests.length === 0) return "Paste at least one line.";
  if (guests.length > MOST_GUESTS) return `These are ${guests.length} visitors: paste at most ${MOST_GUESTS} at once.`;
  const nameless = guests.findIndex(({ name }) => name === "");
  if (nameless !== -1) return `Visitor ${nameless + 1} has no name.`;
  const long = guests.find(({ name }) => [...name].length > LONGEST_NAME);
  return long === undefined ? null : `“${long.name.slice(0, 20)}…” has more than ${LONGEST_NAME} characters.`;
}
