import { statSync } from "node:fs";
import { join } from "node:path";
import { PROJECT } from "../admin/platform/paths.ts";

/** What npm deletes first and writes last when it installs packages. */
const INSTALLED = join(PROJECT, "node_modules/.package-lock.json");

/**
 * Watches for an installation of packages. `npm ci` beside a running service takes away the files that wrangler and the
 * Worker are made of; wrangler would try to build the Worker from what is left, with thousands of lines of errors.
 *
 * @returns a function that tells whether packages were or are being installed since; a check costs microseconds
 */
export function watchPackages(): () => boolean {
  const before = identify();
  return () => identify() !== before;
}

/** The state of npm's record; empty while there is none, also with another package manager. */
function identify(): string {
  const record = statSync(INSTALLED, { throwIfNoEntry: false });
  return record === undefined ? "" : `${record.ino} ${record.mtimeMs}`;
}
