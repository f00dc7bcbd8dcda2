import { styleText } from "node:util";

/** Widest line that is printed for a person. */
export const COLUMNS = 80;

/** How this script is run, for lines that say what to do next. */
export const ADMIN = "npm run -s admin --";

/** How production is deployed, for such lines. */
export const DEPLOY = "npm run deploy";
/** Does not match `--env production-eu`. */
const PRODUCTION = /--env production(?![\w-])/g;

/**
 * Adds `--env` to the commands in a message. Messages are written for local state or for production, or have an `--env` already.
 *
 * @param environment undefined for local state
 */
export function forEnvironment(message: string, environment: string | undefined): string {
  if (environment === undefined) return message;
  const option = `--env ${shellWord(environment)}`;
  const lines = message.split("\n").map((line) => {
    const named = line.includes(" --env ") ? line : line.replaceAll(`${ADMIN} `, `${ADMIN} ${option} `);
    if (environment === "production") return named;
    // Options follow `--` after npm run deploy, but not after a command of the script.
    const deploy = `${ADMIN} deploy ${option}`;
    return named
      .replaceAll(`${DEPLOY} -- `, `${deploy} `)
      .replaceAll(DEPLOY, deploy)
      .replaceAll(PRODUCTION, () => option);
  });
  return lines.join("\n");
}

/** Quotes a word for a shell if necessary, so that printed commands can be pasted. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** The examples at the end of a help page, each on two lines if one is too long. */
export const examples = (...lines: string[]): string =>
  `\n${styleText("bold", "Examples:")}\n${lines.map((line) => fold(`  ${ADMIN} ${line}`)).join("\n")}`;

function fold(line: string): string {
  if (line.length <= COLUMNS) return line;
  const end = line.lastIndexOf(" --", COLUMNS - 2);
  return `${line.slice(0, end)} \\\n      ${line.slice(end + 1)}`;
}
