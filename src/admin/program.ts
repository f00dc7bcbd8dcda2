import { styleText } from "node:util";
import { type Command, CommanderError } from "commander";
import { applicationCommands } from "./application/commands.ts";
import { reconcileCommand } from "./application/reconcile.ts";
import { statsCommand } from "./application/stats.ts";
import { badgeCommands } from "./badge/commands.ts";
import { onOneLine } from "./command-line/arguments.ts";
import { AdminCommand, type RegisterCommand } from "./command-line/command.ts";
import { describeError, oneLine } from "./command-line/errors.ts";
import { type HomesOpener, openHomes } from "./command-line/session.ts";
import { ADMIN, COLUMNS, forEnvironment } from "./command-line/shell.ts";
import { deployCommand } from "./deploy/commands.ts";
import { doctorCommand } from "./doctor/commands.ts";
import { historyCommand } from "./history/commands.ts";
import { homeCommands } from "./home/commands.ts";
import { initCommand } from "./home/init.ts";
import { keyCommands } from "./key/commands.ts";
import { sealingKeyCommands } from "./sealing-key/commands.ts";
import { secretCommands } from "./secret/commands.ts";
import { userCommands } from "./user/commands.ts";
import { webhookCommands } from "./webhook/commands.ts";

/** Every noun of the script, in the order of the help page. A new noun needs a file of its own and a line here. */
const NOUNS: readonly RegisterCommand[] = [
  applicationCommands,
  secretCommands,
  keyCommands,
  webhookCommands,
  badgeCommands,
  userCommands,
  historyCommand,
  statsCommand,
  sealingKeyCommands,
  reconcileCommand,
  homeCommands,
  initCommand,
  deployCommand,
  doctorCommand,
];

const NOTES = `
Run it from the project's folder. Local state is in .wrangler/, or in the folder
that BADGE_STATE_DIR names, whether the service runs or not. Every command has a
help page: ${ADMIN} application create --help`;

/** The whole script. */
export function createAdminProgram(open: HomesOpener = openHomes): Command {
  const program = createProgram();
  for (const add of NOUNS) add(program, open);
  // --help replaces the `help` command.
  for (const group of program.commands) group.helpCommand(false);
  return program;
}

/** The root command: the options that all commands take, and how help and errors look. */
function createProgram(): Command {
  return new AdminCommand(ADMIN)
    .description("Administers the badge distribution service.")
    .option("--env <name>", "work on this environment of wrangler.toml instead of on local state")
    .option("--json", "print the result as JSON on standard output, and nothing else there")
    .option("--actor <name>", "who does this, for the history, instead of the terminal's user", onOneLine)
    .helpCommand(false)
    .helpOption("-h, --help", "show this page")
    .addHelpText("after", NOTES)
    .exitOverride()
    .configureHelp({
      showGlobalOptions: true,
      styleTitle: (title) => styleText("bold", title, { validateStream: false }),
    })
    .configureOutput({
      getOutHelpWidth: () => Math.min(COLUMNS, process.stdout.columns ?? COLUMNS),
      // `run` prints all errors, as one line.
      outputError: () => {},
      writeErr: () => {},
    });
}

/** Runs a command line. Any failure becomes one line on standard error and the exit code 1. */
export async function run(program: Command, words: readonly string[]): Promise<void> {
  try {
    if (words.length === 0) program.outputHelp();
    else await program.parseAsync(words, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return;
    process.exitCode = 1;
    const line =
      error instanceof CommanderError
        ? misuseLine(program, words, error)
        : forEnvironment(describeError(error), program.opts<{ env?: string }>().env);
    process.stderr.write(`${line}\n`);
  }
}

/** Says what is wrong with a command line, and where its help is. */
function misuseLine(program: Command, words: readonly string[], { code, message }: CommanderError): string {
  const { command, path } = commandOf(program, words);
  const help = `see ${path} --help`;
  if (code === "commander.help") return `Say which: ${command.commands.map((each) => each.name()).join(", ")}; ${help}`;
  const text = oneLine(message)
    .replace(/^error: /, "")
    .replace(/^command-argument value '(.*)' is invalid for argument '(.*)'\. /, '"$1" does not fit <$2>. ')
    .replace(/^option '(?:-., )?(--[\w-]+).*' argument '(.*)' is invalid\. /, '"$2" does not fit $1. ')
    .replace(/[.:]$/, "");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}; ${help}`;
}

/** The command that the words name, or the group if they name no command of it. */
function commandOf(program: Command, words: readonly string[]): { command: Command; path: string } {
  let command = program;
  let path = program.name();
  for (const word of words) {
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined) continue;
    command = next;
    path += ` ${word}`;
  }
  return { command, path };
}
