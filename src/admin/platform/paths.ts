import { homedir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The project's folder. */
export const PROJECT = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
export const WRANGLER_CONFIG = join(PROJECT, "wrangler.toml");
export const MIGRATIONS = join(PROJECT, "migrations");

/** Where local data lives. */
export interface LocalState {
  /** The folder for `wrangler --persist-to`; the databases are in its subfolder `v3`. */
  persistTo: string;
  /** Private halves of the local sealing keys, as a dotenv file. */
  sealingKeys: string;
  /** ID and secret of the demo application. */
  demoApplication: string;
  /** Locks of the local service and of the key file. */
  serviceLock: string;
  keyLock: string;
}

/**
 * The project's `.wrangler/`, or the folder that `BADGE_STATE_DIR` names: it keeps tests and further copies of the
 * service apart.
 */
export function localState(directory: string | undefined = process.env.BADGE_STATE_DIR): LocalState {
  const own = directory ? resolve(directory) : undefined;
  const home = own ?? join(PROJECT, ".wrangler");
  return {
    persistTo: own ?? join(home, "state"),
    sealingKeys: join(home, "sealing-keys.env"),
    demoApplication: join(home, "demo-application.json"),
    serviceLock: join(home, "service.lock"),
    keyLock: join(home, "sealing-keys.lock"),
  };
}

/** A path for a person: relative if it is below the current folder, from `~` if it is below home, else in full. */
export function shownPath(path: string): string {
  const fromHere = relative(process.cwd(), path);
  if (!fromHere.startsWith("..")) return fromHere;
  const fromHome = relative(homedir(), path);
  return fromHome.startsWith("..") ? path : join("~", fromHome);
}
