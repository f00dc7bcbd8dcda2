import type { Command } from "commander";
import { UserError } from "./errors.ts";
import { createOutput, type Output } from "./output.ts";
import { localState, shownPath } from "./platform/paths.ts";
import { readTarget, type Target } from "./platform/target.ts";
import { putCommand, workerSecrets } from "./platform/worker-secrets.ts";
import { loadWrangler, runWrangler, shownWrangler } from "./platform/wrangler.ts";
import { makeDeployedSealingKey } from "./sealing-key-deployed.ts";
import { ensureLocalSealing } from "./sealing-key-local.ts";
import { newestVersion } from "./sealing-key-newest.ts";
import { commonOptions, openDatabase } from "./session.ts";
import { examples } from "./shell.ts";

/** Printed by a dry run instead of the first secret's name, which depends on a key that does not exist yet. */
const FIRST_SECRET = "SEALING_KEY_1_FINGERPRINT";

/** The database ID in wrangler.toml until the administrator replaces it. */
const PLACEHOLDER = "REPLACE_ME";

/** Adds `init`. */
export function addInitCommand(program: Command): void {
  program
    .command("init")
    .summary("create what the service needs before it can start")
    .description(
      "Creates what the service needs, step by step. It can be run again at any time.\n\n" +
        "Locally: the tables and the first sealing key; npm start does the same. With --env: checks wrangler.toml, " +
        "applies the migrations to the deployed database, and makes the first sealing key, whose private half becomes " +
        "a Worker secret. Each step is printed before it is taken. Log in first: npx wrangler login.",
    )
    .option("--dry-run", "print the steps without taking them")
    .addHelpText("after", examples("init", "init --env production --dry-run", "init --env production"))
    .action(init);
}

async function init(this: Command, { dryRun = false }: { dryRun?: boolean }): Promise<void> {
  const { env: environment, json = false } = commonOptions(this);
  const output = createOutput(json);
  if (environment === undefined) await initLocally(dryRun, output);
  else await initDeployed(environment, dryRun, output);
}

async function initLocally(dryRun: boolean, output: Output): Promise<void> {
  const state = localState();
  const steps = [
    `Apply the migrations to the local database in ${shownPath(state.persistTo)}.`,
    `Make the first sealing key in ${shownPath(state.sealingKeys)}, if there is none.`,
  ];
  for (const step of steps) output.note(step);
  if (dryRun) return output.result({ steps, done: false }, () => "Nothing was done: --dry-run.");
  const { database, close } = await openDatabase(undefined);
  try {
    await ensureLocalSealing(database, state);
  } finally {
    await close();
  }
  output.result({ steps, done: true }, () => "Ready: npm start.");
}

async function initDeployed(environment: string, dryRun: boolean, output: Output): Promise<void> {
  const target = readTarget(loadWrangler(), environment);
  const migrate = ["d1", "migrations", "apply", "DB", "--remote", "--env", environment];
  if (dryRun) {
    const commands = [...creationCommands(target), migrate, putCommand(FIRST_SECRET, environment)].map(shownWrangler);
    return output.result({ commands, done: false }, () => dryRunText(target, commands));
  }
  if (hasPlaceholder(target)) {
    const commands = creationCommands(target).map(shownWrangler);
    output.result({ commands, done: false }, () => commands.join("\n"));
    throw new UserError(
      `wrangler.toml has no database ID for "${environment}" yet: run the commands above, put the ID that the first prints in place of ${PLACEHOLDER}, and run init again.`,
    );
  }
  output.note(shownWrangler(migrate));
  output.note((await runWrangler(migrate)).trim());
  const version = await ensureDeployedKey(environment, output);
  output.result({ sealingKey: version, done: true }, () => `Ready to deploy: npx wrangler deploy --env ${environment}`);
}

/** Makes the first sealing key if there is none. @returns the version of the newest */
async function ensureDeployedKey(environment: string, output: Output): Promise<number> {
  const { database, close } = await openDatabase(environment);
  try {
    const version = await newestVersion(database);
    if (version > 0) {
      output.note(`There is sealing key ${version} already.`);
      return version;
    }
    const made = await makeDeployedSealingKey(database, workerSecrets(environment, output.note));
    if (!made.isOurs) output.note(`Another administrator made sealing key ${made.version} at the same moment.`);
    return made.version;
  } finally {
    await close();
  }
}

const hasPlaceholder = ({ database }: Target): boolean => database.database_id.includes(PLACEHOLDER);

/** The commands that create what wrangler.toml names. The database comes first: its ID goes into the file. */
const creationCommands = (target: Target): string[][] => [
  ...(hasPlaceholder(target) ? [["d1", "create", target.database.database_name]] : []),
  ...target.queues.map((queue) => ["queues", "create", queue]),
];

function dryRunText(target: Target, commands: string[]): string {
  const id = hasPlaceholder(target)
    ? `\nPut the ID that the first prints in place of ${PLACEHOLDER} in wrangler.toml.`
    : "";
  return `${commands.join("\n")}\n${id}
The private half of the sealing key goes in by standard input, its public half into D1. FINGERPRINT is the start
of the public half's SHA-256, so that no two keys share a name.`;
}
