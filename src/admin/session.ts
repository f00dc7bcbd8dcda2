import { Command } from "commander";
import { createOutput, type Output } from "./output.ts";
import { openDeployedD1, openLocalD1 } from "./platform/d1.ts";
import { Database } from "./platform/database.ts";
import { type LocalState, localState } from "./platform/paths.ts";
import { readTarget } from "./platform/target.ts";
import { loadWrangler } from "./platform/wrangler.ts";
import { ensureLocalSealing } from "./sealing-key-local.ts";
import { ADMIN, shellWord } from "./shell.ts";

/** What a command's action works with. */
export interface Session {
  database: Database;
  output: Output;
  /** What the command works on: local state, or the deployed environment of this name. */
  place: { local: LocalState } | { environment: string };
}

/** A database that is open, until `close`. */
export interface OpenedDatabase {
  database: Database;
  place: Session["place"];
  close(): Promise<void>;
}

/** Opens local D1, or with a name the D1 of that deployed environment. */
export type DatabaseOpener = (environment: string | undefined) => Promise<OpenedDatabase>;

/** The root command, with the way in which the commands below it open their database. */
export class AdminProgram extends Command {
  readonly openDatabase: DatabaseOpener;

  constructor(name: string, open: DatabaseOpener) {
    super(name);
    this.openDatabase = open;
  }
}

/** A command for the same database, as it is typed. */
export const shownCommand = ({ place }: Session, words: string): string =>
  `${ADMIN} ${words}${"local" in place ? "" : ` --env ${shellWord(place.environment)}`}`;

/** The options that every command takes. */
export interface CommonOptions {
  env?: string;
  json?: true;
}

export const commonOptions = (command: Command): CommonOptions => command.optsWithGlobals<CommonOptions>();

interface SessionOptions {
  /** Whether the work seals something. Local state then gets its first sealing key if it has none. */
  seals?: boolean;
}

/** Opens the database that a command works on, does the work, and closes it again. */
export async function withSession(
  command: Command,
  work: (session: Session) => Promise<void>,
  { seals = false }: SessionOptions = {},
): Promise<void> {
  const { env: environment, json = false } = commonOptions(command);
  const { database, close, place } = await openerOf(command)(environment);
  try {
    if (seals && "local" in place) await ensureLocalSealing(database, place.local);
    await work({ database, output: createOutput(json), place });
  } finally {
    await close();
  }
}

/**
 * The action of a command that works on the database.
 *
 * @param work is called with the session and what commander passes to an action: the arguments, then the options
 */
export function inSession<Given extends unknown[]>(
  work: (session: Session, ...given: Given) => Promise<void>,
  options?: SessionOptions,
): (this: Command, ...given: Given) => Promise<void> {
  return function action(...given) {
    return withSession(this, (session) => work(session, ...given), options);
  };
}

function openerOf(command: Command): DatabaseOpener {
  if (command instanceof AdminProgram) return command.openDatabase;
  if (command.parent === null) throw new Error("the command belongs to no AdminProgram");
  return openerOf(command.parent);
}

/**
 * Starts a process for the database, which `close` ends.
 *
 * @param environment name of a deployed environment; undefined for local state
 */
export async function openDatabase(environment: string | undefined): Promise<OpenedDatabase> {
  const wrangler = loadWrangler();
  const target = readTarget(wrangler, environment);
  const place = environment === undefined ? { local: localState() } : { environment };
  const { d1, close } =
    "local" in place ? await openLocalD1(wrangler, target, place.local) : await openDeployedD1(wrangler, target);
  return { database: new Database(d1), place, close };
}
