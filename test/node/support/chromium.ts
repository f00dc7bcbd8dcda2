import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** As few of Chromium's own requests as it lets itself be told, and no host but this computer. */
export const CHROMIUM_FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-renderer-backgrounding",
  "--disable-backgrounding-occluded-windows",
  "--disable-background-timer-throttling",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/**
 * The browser for tests: `CHROMIUM_PATH`, else where Debian installs it, else `chromium` on the PATH.
 *
 * @returns null where there is none
 * @throws Error when `CHROMIUM_PATH` names none: somebody wants the tests to run
 */
export function findChromium(): string | null {
  const wanted = process.env.CHROMIUM_PATH;
  if (wanted && !existsSync(wanted)) throw new Error(`CHROMIUM_PATH is ${wanted}, where nothing is`);
  const folders = process.env.PATH?.split(delimiter) ?? [];
  const candidates = ["/usr/bin/chromium", ...folders.map((folder) => join(folder, "chromium"))];
  return wanted || (candidates.find((path) => existsSync(path)) ?? null);
}
