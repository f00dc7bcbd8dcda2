import type { Actor } from "../../shared/actor.ts";
import { openDeployedHomes, openLocalHomes } from "../platform/d1.ts";
import type { Database } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";
import { type LocalState, localState } from "../platform/paths.ts";
import { readTarget } from "../platform/target.ts";
import { deployedWake, localWake, type Wake } from "../platform/wake.ts";
import { loadWrangler } from "../platform/wrangler.ts";
import type { Output } from "./output.ts";
import { ADMIN, shellWord } from "./shell.ts";

/** What a command's action works with. */
export interface Session {
  homes: Homes;
  output: Output;
  /** What the command works on: local state, or the deployed environment of this name. */
  backend: { local: LocalState } | { environment: string };
  /** Who gave the command, for the history. */
  actor: Actor;
  /** Tells the service that a command waits. */
  wake: Wake;
  /** Opens the homes again. */
  reopen(): Promise<OpenedHomes>;
}

/** The homes that a command works on, which are open until `close`. */
export interface OpenedHomes {
  homes: Homes;
  /** Home 1's. */
  database: Database;
  backend: Session["backend"];
  wake: Wake;
  close(): Promise<void>;
}

/** Opens the homes of a deployed environment; the local ones when it is undefined. */
export type HomesOpener = (environment: string | undefined) => Promise<OpenedHomes>;

/** A command line for the same environment. */
export const formatCommand = ({ backend }: Session, words: string): string =>
  `${ADMIN} ${words}${"local" in backend ? "" : ` --env ${shellWord(backend.environment)}`}`;

/**
 * Opens the homes. Local databases run in a process that `close` ends.
 *
 * @param environment name of a deployed environment; undefined for local state
 */
export async function openHomes(environment: string | undefined): Promise<OpenedHomes> {
  const wrangler = loadWrangler();
  const target = readTarget(wrangler, environment);
  if (environment !== undefined) {
    const { homes, account } = await openDeployedHomes(target);
    const wake = deployedWake(account, target);
    return { homes, database: homes.first.database, backend: { environment }, wake, close: () => Promise.resolve() };
  }
  const local = localState();
  const { homes, close } = await openLocalHomes(wrangler, target, local);
  return { homes, database: homes.first.database, backend: { local }, wake: localWake(local), close };
}
