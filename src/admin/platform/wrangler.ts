import { createRequire } from "node:module";
import { join } from "node:path";
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
