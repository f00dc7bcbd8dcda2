import type { Command } from "commander";
import { ADMIN, shellWord } from "./errors.ts";
import { createOutput, type Output } from "./output.ts";
import type { Database } from "./platform/database.ts";
import type { LocalState } from "./platform/paths.ts";

/** What an action works with. */
export interface Session {
  database: Database;
  output: Output;
  /** What the work is done on: local state, or the deployed environment of this name. */
  place: { local: LocalState } | { environment: string };
}

/** A command for the same place, as a person types it. */
export const shownCommand = ({ place }: Session, words: string): string =>
  `${ADMIN} ${words}${"local" in place ? "" : ` --env ${shellWord(place.environment)}`}`;

/** The options that every command takes. */
export interface CommonOptions {
  env?: string;
  json?: true;
}

export const commonOptions = (command: Command): CommonOptions => command.optsWithGlobals<CommonOptions>();

/**
 * Opens the database that a command works on, does the work, and closes it again. What needs wrangler is loaded here
 * and not before: help and mistakes on the command line answer at once.
 *
 * @param seals whether the work seals something: then local state gets its first sealing key
 */
export async function withSession(
  command: Command,
  work: (session: Session) => Promise<void>,
  { seals = false }: { seals?: boolean } = {},
): Promise<void> {
  const { env: environment, json = false } = commonOptions(command);
  const { database, close, place } = await openDatabase(environment);
  try {
    if (seals && "local" in place) {
      const { ensureLocalSealing } = await import("./operations/local-sealing.ts");
      await ensureLocalSealing(database, place.local);
    }
    await work({ database, output: createOutput(json), place });
  } finally {
    await close();
  }
}

/** @param environment name of a deployed environment; undefined for local state */
export async function openDatabase(
  environment: string | undefined,
): Promise<{ database: Database; place: Session["place"]; close: () => Promise<void> }> {
  const [{ loadWrangler }, { readTarget }, { openDeployedD1, openLocalD1 }, { localState }] = await Promise.all([
    import("./platform/wrangler.ts"),
    import("./platform/target.ts"),
    import("./platform/d1.ts"),
    import("./platform/paths.ts"),
  ]);
  const wrangler = loadWrangler();
  const target = readTarget(wrangler, environment);
  const place = environment === undefined ? { local: localState() } : { environment };
  const opening = "local" in place ? openLocalD1(wrangler, target, place.local) : openDeployedD1(wrangler, target);
  // Drizzle loads while the process behind the database starts.
  const [{ d1, close }, { Database }] = await Promise.all([opening, import("./platform/database.ts")]);
  return { database: new Database(d1), place, close };
}
