import type { Command } from "commander";
import { createOutput, type Output } from "./output.ts";
import type { Database } from "./platform/database.ts";
import type { LocalState } from "./platform/paths.ts";

/** What an action works with. */
export interface Session {
  database: Database;
  output: Output;
  /** Name of the deployed environment; undefined for local state. */
  environment: string | undefined;
}

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
  const { database, close, state } = await openDatabase(environment);
  try {
    if (seals && state !== undefined) {
      const { ensureLocalSealing } = await import("./operations/local-sealing.ts");
      await ensureLocalSealing(database, state);
    }
    await work({ database, output: createOutput(json), environment });
  } finally {
    await close();
  }
}

/** Opens a database. `state` is there for local ones only. */
export async function openDatabase(environment: string | undefined) {
  const [{ loadWrangler }, { readTarget }, { openDeployedD1, openLocalD1 }, { localState }] = await Promise.all([
    import("./platform/wrangler.ts"),
    import("./platform/target.ts"),
    import("./platform/d1.ts"),
    import("./platform/paths.ts"),
  ]);
  const wrangler = loadWrangler();
  const target = readTarget(wrangler, environment);
  const state: LocalState | undefined = environment === undefined ? localState() : undefined;
  const opening = state ? openLocalD1(wrangler, target, state) : openDeployedD1(wrangler, target);
  // Drizzle loads while the process behind the database starts.
  const [{ d1, close }, { Database }] = await Promise.all([opening, import("./platform/database.ts")]);
  return { database: new Database(d1), close, state };
}
