import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";
import { shellWord, UserError } from "../errors.ts";
import { PROJECT } from "./paths.ts";
import { QUIET_WRANGLER, WRANGLER_PROGRAM } from "./wrangler.ts";

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
