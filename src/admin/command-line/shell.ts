import { styleText } from "node:util";

/** Widest line that is printed for a person. */
export const COLUMNS = 80;

/** How this script is run, for lines that say what to do next. */
export const ADMIN = "npm run -s admin --";

/** How production is deployed, for the same lines. */
export const DEPLOY = "npm run deploy";

/**
 * Makes the commands of a message work on the environment that it is about: messages have them as they are for local state,
 * or with an `--env` of their own.
 *
 * @param environment undefined for local state
 */
export function forEnvironment(message: string, environment: string | undefined): string {
  if (environment === undefined) return message;
  const option = `--env ${shellWord(environment)}`;
  const lines = message.split("\n").map((line) => {
    const named = line.includes(" --env ") ? line : line.replaceAll(`${ADMIN} `, `${ADMIN} ${option} `);
    return environment === "production" ? named : named.replaceAll(DEPLOY, `${ADMIN} deploy ${option}`);
  });
  return lines.join("\n");
}

/** Quotes a word for a shell if it needs that, so that printed commands work when they are pasted. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** Text for the end of a help page: commands as they are typed, on two lines where one is too long. */
export const examples = (...lines: string[]): string =>
  `\n${styleText("bold", "Examples:")}\n${lines.map((line) => fold(`  ${ADMIN} ${line}`)).join("\n")}`;

function fold(line: string): string {
  if (line.length <= COLUMNS) return line;
  const end = line.lastIndexOf(" --", COLUMNS - 2);
  return `${line.slice(0, end)} \\\n      ${line.slice(end + 1)}`;
}
