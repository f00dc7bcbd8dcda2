import { COLUMNS, shellWord } from "../../admin/command-line/shell.ts";

/** Secrets and invitation tokens. Anybody who reads one can use it, so only its start is printed. */
const SECRET = /\b((?:bdss|inv)_[\w-]{4})[\w-]+/g;
/**
 * Longest string in JSON that is shown in full: application IDs and badge numbers are shorter, keys and JWTs longer.
 */
const MAX_SHOWN_CHARACTERS = 40;
const KEPT_CHARACTERS = 24;

export const withoutSecrets = (text: string): string => text.replace(SECRET, "$1…");

/** JSON for a person, with secrets and long strings shortened. In other text, only secrets are shortened. */
export function shownJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(withoutSecrets(text)), (_name, value: unknown) => shortened(value));
  } catch {
    return withoutSecrets(text);
  }
}

function shortened(value: unknown): unknown {
  const isLong = typeof value === "string" && value.length > MAX_SHOWN_CHARACTERS;
  return isLong ? `${value.slice(0, KEPT_CHARACTERS)}…` : value;
}

/**
 * Breaks a text into lines.
 *
 * @param first the start of the first line; the others are indented as far
 */
export function fold(first: string, text: string): string[] {
  const room = COLUMNS - first.length;
  const lines: string[] = [];
  for (let rest = text; rest !== "" || lines.length === 0; ) {
    const end = rest.length <= room ? rest.length : lastBreak(rest, room);
    lines.push(`${lines.length === 0 ? first : " ".repeat(first.length)}${rest.slice(0, end).trimEnd()}`);
    rest = rest.slice(end).trimStart();
  }
  return lines;
}

/** Breaks a command between its words into lines that a shell reads as one. */
export function foldCommand(first: string, words: readonly string[]): string[] {
  const lines: string[] = [];
  let line = first.trimEnd();
  for (const word of words.map(shellWord)) {
    if (`${line} ${word} \\`.length > COLUMNS) {
      lines.push(`${line} \\`);
      line = " ".repeat(first.trimEnd().length);
    }
    line += ` ${word}`;
  }
  return [...lines, line];
}

/** After the last space or comma that fits; in the middle of a word if there is none. */
function lastBreak(text: string, room: number): number {
  for (let end = room; end > room / 2; end--) {
    if (" ,".includes(text.charAt(end - 1))) return end;
  }
  return room;
}
