import { homedir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The project's folder. */
export const PROJECT = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
export const WRANGLER_CONFIG = join(PROJECT, "wrangler.toml");
export const MIGRATIONS = join(PROJECT, "migrations");

export type LocalState = ReturnType<typeof localState>;

/**
 * Where local data lives: in the project's `.wrangler/`, or in the folder that `BADGE_STATE_DIR` names, which keeps tests and
 * further copies of the service apart.
 */
export function localState(directory: string | undefined = process.env.BADGE_STATE_DIR) {
  const own = directory ? resolve(directory) : undefined;
  const home = own ?? join(PROJECT, ".wrangler");
  return {
    /** The folder for `wrangler --persist-to`; the databases are in its subfolder `v3`. */
    persistTo: own ?? join(home, "state"),
    /** Private halves of the local sealing keys, as a dotenv file. */
    sealingKeys: join(home, "sealing-keys.env"),
    /** ID and secret of the demo application. */
    demoApplication: join(home, "demo-application.json"),
    /** Locks of the local service and of the key file. */
    serviceLock: join(home, "service.lock"),
    /** Where the service that holds the lock is reached on this computer. */
    serviceOrigin: join(home, "service-origin.txt"),
    keyLock: join(home, "sealing-keys.lock"),
  };
}

/** A path for a person: relative if it is below the current folder, from `~` if it is below home, else in full. */
export function formatPath(path: string): string {
  const fromHere = relative(process.cwd(), path);
  if (!fromHere.startsWith("..")) return fromHere;
  const fromHome = relative(homedir(), path);
  return fromHome.startsWith("..") ? path : join("~", fromHome);
}
