import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { UserError } from "../command-line/errors.ts";
import { formatPath, type LocalState } from "./paths.ts";

/**
 * Checks that this user may change the local state. For another user's files, SQLite would say "locked" or "cannot open",
 * and only after retries.
 *
 * @throws UserError that names what may not be written
 */
export function assertStateWritable({ persistTo, sealingKeys, demoApplication, serviceLock, keyLock }: LocalState) {
  for (const path of [persistTo, sealingKeys, demoApplication, serviceLock, keyLock]) assertWritable(path);
  for (const path of filesBelow(join(persistTo, "v3"))) assertWritable(path);
}

/** Checks that a path can be written to or, if it does not exist, created. @throws UserError when it cannot */
export function assertWritable(path: string): void {
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code !== "ENOENT" || dirname(path) === path) {
      throw new UserError(`You may not write to ${formatPath(path)}${ownerHint(path)} (${code}).`);
    }
    assertWritable(dirname(path));
  }
}

/**
 * The files of a folder, at any depth. None when it does not exist.
 *
 * @throws UserError for a folder that is not writable
 */
function filesBelow(folder: string): string[] {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return [];
  assertWritable(folder);
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

/** Empty when the file belongs to this user, or when its owner cannot be determined. */
function ownerHint(path: string): string {
  const user = process.getuid?.();
  try {
    const { uid } = statSync(path);
    return uid === user ? "" : `, which belongs to another user (${uid}, and you are ${user}): run this as that user`;
  } catch {
    return "";
  }
}
