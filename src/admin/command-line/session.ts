import { Command } from "commander";
import type { Actor } from "../../shared/actor.ts";
import { administrator } from "../history/note.ts";
import { openDeployedHomes, openLocalHomes } from "../platform/d1.ts";
import type { Database } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";
import { type LocalState, localState } from "../platform/paths.ts";
import { readTarget } from "../platform/target.ts";
import { loadWrangler } from "../platform/wrangler.ts";
import { ensureLocalSealing } from "../sealing-key/local.ts";
import { createOutput, type Output } from "./output.ts";
import { ADMIN, shellWord } from "./shell.ts";

/** What a command's action works with. */
export interface Session {
  homes: Homes;
  output: Output;
  /** What the command works on: local state, or the deployed environment of this name. */
  place: { local: LocalState } | { environment: string };
  /** Who gave the command, for the history (contract section 23). */
  actor: Actor;
  /** Opens the homes once more. */
  reopen(): Promise<OpenedHomes>;
}

/** The homes that a command works on, which are open until `close`. */
export interface OpenedHomes {
  homes: Homes;
  /** Home 1's, by itself. */
  database: Database;
  place: Session["place"];
  close(): Promise<void>;
}

/** Opens the local homes, or with a name those of that deployed environment. */
export type HomesOpener = (environment: string | undefined) => Promise<OpenedHomes>;

/** The root command, with the way in which the commands below it open their homes. */
export class AdminProgram extends Command {
  readonly openHomes: HomesOpener;

  constructor(name: string, open: HomesOpener) {
    super(name);
    this.openHomes = open;
  }
}

/** A command for the same environment, as it is typed. */
export const shownCommand = ({ place }: Session, words: string): string =>
  `${ADMIN} ${words}${"local" in place ? "" : ` --env ${shellWord(place.environment)}`}`;

/** The options that every command takes. */
interface CommonOptions {
  env?: string;
  json?: true;
  actor?: string;
}

export const commonOptions = (command: Command): CommonOptions => command.optsWithGlobals<CommonOptions>();

interface SessionOptions {
  /** Whether the work seals something. Local state then gets its first sealing key if it has none. */
  seals?: boolean;
}

/** Opens the homes that a command works on, does the work, and closes them again. */
export async function withSession(
  command: Command,
  work: (session: Session) => Promise<void>,
  { seals = false }: SessionOptions = {},
): Promise<void> {
  const { env: environment, json = false, actor } = commonOptions(command);
  const reopen = () => openerOf(command)(environment);
  const { homes, close, place } = await reopen();
  try {
    if (seals && "local" in place) await ensureLocalSealing(homes, place.local);
    await work({ homes, output: createOutput(json, environment), place, actor: administrator(actor), reopen });
  } finally {
    await close();
  }
}

/**
 * The action of a command that works on the databases.
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

/** The action of a command that prints what it reads or makes. */
export const printing = <Given extends unknown[], Result>(
  work: (session: Session, ...given: Given) => Promise<Result>,
  text: (result: Result, session: Session) => string,
  options?: SessionOptions,
) =>
  inSession<Given>(async (session, ...given) => {
    const result = await work(session, ...given);
    session.output.result(result, () => text(result, session));
  }, options);

function openerOf(command: Command): HomesOpener {
  if (command instanceof AdminProgram) return command.openHomes;
  if (command.parent === null) throw new Error("the command belongs to no AdminProgram");
  return openerOf(command.parent);
}

/**
 * Starts a process for the databases, which `close` ends.
 *
 * @param environment name of a deployed environment; undefined for local state
 */
export async function openHomes(environment: string | undefined): Promise<OpenedHomes> {
  const wrangler = loadWrangler();
  const target = readTarget(wrangler, environment);
  const place = environment === undefined ? { local: localState() } : { environment };
  const { homes, close } =
    "local" in place ? await openLocalHomes(wrangler, target, place.local) : await openDeployedHomes(target);
  return { homes, database: homes.first.database, place, close };
}
