import { COLUMN_NAMES, columnOf, type GuestColumn } from "./columns-of-list.ts";
import { readListTime } from "./list-times.ts";

/** A visitor to invite. */
export interface Guest {
  name: string;
  host: string;
  /** If empty, anybody who has the code may claim it. */
  userId: string;
  /** ISO 8601; null for at once. */
  startsAt: string | null;
  /** ISO 8601; null for no end. */
  expiresAt: string | null;
}

/** The times of visitors whose line has none. */
export type CommonTimes = Pick<Guest, "startsAt" | "expiresAt">;

/** The visitors of a list, or what is wrong with it. */
export type ReadGuests = { guests: Guest[]; problem: null } | { guests: null; problem: string };

const MOST_GUESTS = 100;
const LONGEST_NAME = 100;

const wrong = (problem: string): ReadGuests => ({ guests: null, problem });

/**
 * Reads a table that was copied from a spreadsheet, or CSV. The first line names the columns, in any order; a list without
 * such a line has only names. An unknown column is refused, so that its values are not silently lost.
 */
export function readGuests(text: string, common: CommonTimes, now: Date): ReadGuests {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const [head] = lines;
  if (head === undefined) return wrong("Paste at least one line.");
  const separator = ["\t", ";", ","].find((each) => head.includes(each)) ?? "\t";
  const rows = lines.map((line) => cellsOf(line, separator));
  const columns = columnsOf(rows);
  if (typeof columns === "string") return wrong(columns);
  const guests: Guest[] = [];
  for (const [place, cells] of rows.slice(columns.isHeader ? 1 : 0).entries()) {
    const guest = guestOf(cells, columns.names, common, now);
    if (typeof guest === "string") return wrong(`Visitor ${place + 1}: ${guest}`);
    guests.push(guest);
  }
  if (guests.length === 0) return wrong("Paste at least one visitor below the names of the columns.");
  if (guests.length > MOST_GUESTS) {
    return wrong(`These are ${guests.length} visitors: paste at most ${MOST_GUESTS} at once.`);
  }
  return { guests, problem: null };
}

/** @returns what is wrong with the first line, or which column is which */
function columnsOf(rows: readonly string[][]): string | { isHeader: boolean; names: readonly GuestColumn[] } {
  const [head = []] = rows;
  const found = head.map(columnOf);
  if (found.every((column) => column === undefined)) {
    if (rows.every((cells) => cells.length === 1)) return { isHeader: false, names: ["name"] };
    return `The first line must name the columns: ${COLUMN_NAMES}.`;
  }
  const unknown = head.find((_, place) => found[place] === undefined);
  if (unknown !== undefined) return `The column “${unknown}” is not known. The columns are: ${COLUMN_NAMES}.`;
  const names = found.filter((column) => column !== undefined);
  const twice = names.find((column, place) => names.indexOf(column) !== place);
  if (twice !== undefined) return `Two columns are the same: ${twice}.`;
  return names.includes("name") ? { isHeader: true, names } : "There is no column with the visitors' names.";
}

/** @returns what is wrong with a line, or the visitor */
function guestOf(
  cells: readonly string[],
  columns: readonly GuestColumn[],
  common: CommonTimes,
  now: Date,
): string | Guest {
  const cell = (column: GuestColumn) => cells[columns.indexOf(column)]?.trim() ?? "";
  if (cells.length > columns.length) return "the line has more cells than there are columns.";
  const name = cell("name");
  if (name === "") return "there is no name.";
  if ([...name].length > LONGEST_NAME) return `“${name.slice(0, 20)}…” has more than ${LONGEST_NAME} characters.`;
  const startsAt = timeOf(cell("from"), common.startsAt, now, false);
  if (startsAt instanceof Error) return startsAt.message;
  const day = startsAt === null ? now : new Date(startsAt);
  const expiresAt = timeOf(cell("until"), common.expiresAt, day, true);
  if (expiresAt instanceof Error) return expiresAt.message;
  if (expiresAt !== null && Date.parse(expiresAt) <= now.getTime()) return "“until” has passed.";
  if (startsAt !== null && expiresAt !== null && startsAt >= expiresAt) return "“until” is not after “from”.";
  return { name, host: cell("host"), userId: cell("user"), startsAt, expiresAt };
}

function timeOf(text: string, otherwise: string | null, day: Date, isEnd: boolean): string | null | Error {
  if (text === "") return otherwise;
  const time = readListTime(text, day, isEnd);
  return time.ok ? time.at.toISOString() : new Error(time.why);
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

/** A quoted cell may contain separators (RFC 4180). */
const isUnfinished = (cell: string): boolean => cell.startsWith('"') && cell.split('"').length % 2 === 0;
