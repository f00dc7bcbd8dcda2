import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";
import { UserError } from "../errors.ts";
import { shellWord } from "../shell.ts";
import { PROJECT } from "./paths.ts";

/**
 * Keeps wrangler to itself: nothing of its own on standard output, no questions, no statistics, no request for an
 * update or for a description of this computer's place in the network. `CLOUDFLARE_ENV` must not turn "local" into
 * another environment.
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
  // Both would keep copies of requests, with their headers, among the local data.
  X_LOCAL_OBSERVABILITY: "false",
  X_LOCAL_EXPLORER: "false",
};

export type Wrangler = typeof import("wrangler");

/**
 * wrangler as a library. Only commands that need it load it, since that takes most of a second; `require` is quicker
 * than `import`, which reads the 15 MB twice.
 */
export function loadWrangler(): Wrangler {
  Object.assign(process.env, QUIET_WRANGLER, { WRANGLER_LOG: "none" });
  // The runtime's own messages come through the console (a lock that was waited for, say); this script's do not.
  Object.assign(console, { log: ignore, info: ignore, warn: ignore, error: ignore, debug: ignore });
  const wrangler: Wrangler = createRequire(import.meta.url)("wrangler");
  return wrangler;
}

function ignore(): void {}

/** wrangler's program, for child processes. */
export const WRANGLER_PROGRAM = join(PROJECT, "node_modules/wrangler/wrangler-dist/cli.js");

/** How wrangler ended. */
export interface WranglerEnd {
  succeeded: boolean;
  stdout: string;
  stderr: string;
}

/** The command as a person would type it. It never holds a secret: those go in by standard input. */
export const shownWrangler = (words: readonly string[]): string => `npx wrangler ${words.map(shellWord).join(" ")}`;

/** Runs wrangler's program and waits for its end. */
export async function tryWrangler(words: readonly string[], input = ""): Promise<WranglerEnd> {
  const child = spawn(process.execPath, ["--no-warnings", WRANGLER_PROGRAM, ...words], {
    cwd: PROJECT,
    stdio: "pipe",
    env: { ...process.env, ...QUIET_WRANGLER, WRANGLER_LOG: "log", NO_COLOR: "1", FORCE_COLOR: "0" },
  });
  child.stdin.on("error", () => {
    // It ended without reading; its exit code tells why.
  });
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { succeeded: code === 0, stdout, stderr };
}

/** @throws UserError with wrangler's own first line of complaint */
export async function runWrangler(words: readonly string[], input?: string): Promise<string> {
  const { succeeded, stdout, stderr } = await tryWrangler(words, input);
  if (succeeded) return stdout;
  throw new UserError(
    `${shownWrangler(words)} failed: ${complaint(stderr) ?? complaint(stdout) ?? "it gave no reason"}`,
  );
}

function complaint(output: string): string | undefined {
  const lines = stripVTControlCharacters(output)
    .split("\n")
    .map((line) => line.trim());
  const marked = lines.find((line) => line.includes("[ERROR]"));
  return marked?.replace(/^.*\[ERROR\]\s*/, "") ?? lines.find((line) => line !== "");
}
