import { styleText } from "node:util";

/** How wide help pages and what is printed for a person are. */
export const COLUMNS = 80;

/** How a person runs this script; for lines that say what to do next. */
export const ADMIN = "npm run -s admin --";

/** A word as a shell takes it, in quotes where it needs them: commands that are printed shall work when pasted. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** Text for the end of a help page: commands as they are typed, on two lines where one is too narrow. */
export const examples = (...lines: string[]): string =>
  `\n${styleText("bold", "Examples:")}\n${lines.map((line) => fold(`  ${ADMIN} ${line}`)).join("\n")}`;

function fold(line: string): string {
  if (line.length <= COLUMNS) return line;
  const end = line.lastIndexOf(" --", COLUMNS - 2);
  return `${line.slice(0, end)} \\\n      ${line.slice(end + 1)}`;
}
