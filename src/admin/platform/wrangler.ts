import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";
import { oneLine, UserError } from "../command-line/errors.ts";
import { shellWord } from "../command-line/shell.ts";
import { PROJECT } from "./paths.ts";
import { knownErrorIn } from "./rights.ts";

/**
 * Keeps wrangler quiet: no output of its own, no questions, no statistics, and no requests for updates or for this
 * computer's location. `CLOUDFLARE_ENV` is emptied, so that it cannot turn "local" into another environment.
 */
export const QUIET_WRANGLER: Readonly<Record<string, string>> = {
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_SEND_ERROR_REPORTS: "false",
  WRANGLER_WRITE_LOGS: "false",
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_NO_SKILLS_UPDATE_PROMPTS: "true",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  CLOUDFLARE_ENV: "",
  CI: "true",
  // Both would store requests with their headers in the local data.
  X_LOCAL_OBSERVABILITY: "false",
  X_LOCAL_EXPLORER: "false",
};

export type Wrangler = typeof import("wrangler");

/**
 * wrangler as a library. It is loaded only when it is needed, since that takes most of a second; `require` is quicker
 * than `import`, which reads the 15 MB twice.
 */
export function loadWrangler(): Wrangler {
  Object.assign(process.env, QUIET_WRANGLER, { WRANGLER_LOG: "none" });
  // The runtime logs to the console (when it waits for a lock, say); this script never does.
  Object.assign(console, { log: ignore, info: ignore, warn: ignore, error: ignore, debug: ignore });
  const wrangler: Wrangler = createRequire(import.meta.url)("wrangler");
  return wrangler;
}

function ignore(): void {}

/** wrangler's program, for child processes. */
export const WRANGLER_PROGRAM = join(PROJECT, "node_modules/wrangler/wrangler-dist/cli.js");

/** A command line of wrangler. It never contains a secret: those are passed on standard input. */
export const formatWranglerCommand = (words: readonly string[]): string =>
  `npx wrangler ${words.map(shellWord).join(" ")}`;

/**
 * Runs wrangler's program, and shows its warnings on standard error.
 *
 * @returns what it printed
 * @throws UserError with wrangler's own error message
 */
export async function runWrangler(words: readonly string[], input = ""): Promise<string> {
  const child = spawn(process.execPath, ["--no-warnings", WRANGLER_PROGRAM, ...words], {
    cwd: PROJECT,
    stdio: "pipe",
    env: { ...process.env, ...QUIET_WRANGLER, WRANGLER_LOG: "log", NO_COLOR: "1", FORCE_COLOR: "0" },
  });
  child.stdin.on("error", () => {
    // It ended without reading its input; the exit code is enough.
  });
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  const printed = stripVTControlCharacters(`${stderr}\n${stdout}`);
  for (const warning of warningsIn(printed)) process.stderr.write(`! wrangler: ${warning}\n`);
  if (code === 0) return stdout;
  const known = knownErrorIn(printed);
  if (known !== undefined) throw known;
  throw new UserError(
    `${formatWranglerCommand(words)} failed: ${reasonIn(stderr) ?? reasonIn(stdout) ?? "it gave no reason"}`,
  );
}

/**
 * wrangler's warning about each home that only local development has. Environments need not bind the same homes, and following
 * the advice would bind a database that nothing uses.
 */
const ABOUT_LOCAL_HOMES =
  /- There is a d1_databases binding with name "DB_\d+" at the top level, but not on "env\.[\w-]+"\..*?Please add a binding for "DB_\d+" to "env\.[\w-]+\.d1_databases\.bindings"\. ?/g;
const HEADINGS = /^Processing \S+ configuration: (- "env\.[\w-]+" environment configuration ?)*$/;

/** Each of wrangler's warnings with the indented lines below it, on one line. */
export const warningsIn = (plain: string): string[] =>
  [...plain.matchAll(/\[WARNING\] *(.+(?:\n(?: .*)?)*)/g)]
    .map(([, warning = ""]) => oneLine(warning).replaceAll(ABOUT_LOCAL_HOMES, "").trim())
    .filter((warning) => !HEADINGS.test(warning));

/** wrangler's first error with the indented lines below it, which have the platform's message; else its first line. */
function reasonIn(output: string): string | undefined {
  const plain = stripVTControlCharacters(output).replace(/^ *If you think this is a bug.*/m, "");
  const [, error] = /\[ERROR\] *(.+(?:\n(?: .*)?)*)/.exec(plain) ?? [];
  return error ?? plain.split("\n").find((line) => line.trim() !== "");
}
