import { type Command, Option } from "commander";
import { homeNumber } from "../command-line/arguments.ts";
import { UserError } from "../command-line/errors.ts";
import { createOutput, type Output } from "../command-line/output.ts";
import { commonOptions, openHomes } from "../command-line/session.ts";
import { examples } from "../command-line/shell.ts";
import { localState, shownPath } from "../platform/paths.ts";
import { hasDatabase, PLACEHOLDER, readTarget, type Target } from "../platform/target.ts";
import { putCommand, workerSecrets } from "../platform/worker-secrets.ts";
import { loadWrangler, migrateCommand, runWrangler, shownWrangler } from "../platform/wrangler.ts";
import { makeDeployedSealingKey } from "../sealing-key/deployed.ts";
import { ensureLocalSealing } from "../sealing-key/local.ts";
import { newestVersion, publishNewestEverywhere } from "../sealing-key/newest.ts";
import { createDatabaseCommand, D1_JURISDICTIONS, D1_LOCATIONS, initHome } from "./init-home.ts";

/** Printed by a dry run instead of the first secret's name, which depends on a key that does not exist yet. */
const FIRST_SECRET = "SEALING_KEY_1_FINGERPRINT";

/** Adds `init`. */
export function addInitCommand(program: Command): void {
  program
    .command("init")
    .summary("create what the service, or another home of it, needs before it can start")
    .description(
      "Creates what the service needs, step by step. It can be run again at any time.\n\n" +
        "Locally: the tables of every home and the first sealing key; npm start does the same. With --env: checks " +
        "wrangler.toml, applies the migrations to every home's database, and makes the first sealing key, whose private " +
        "half becomes a Worker secret. Each step is printed before it is taken. Log in first: npx wrangler login.\n\n" +
        "With --home, what another home needs: prints the command that makes its database, where --location or " +
        "--jurisdiction says, and the lines for wrangler.toml. Once they are there: applies the migrations to that database " +
        "and publishes the newest sealing key in it. A home's place never changes.",
    )
    .option("--home <n>", "make this home, 2 or higher; needs --env", homeNumber)
    .addOption(new Option("--location <hint>", "where the home's database is made").choices(D1_LOCATIONS))
    .addOption(
      new Option("--jurisdiction <name>", "where the home's data must stay")
        .choices(D1_JURISDICTIONS)
        .conflicts("location"),
    )
    .option("--dry-run", "print the steps without taking them")
    .addHelpText(
      "after",
      examples(
        "init",
        "init --env production --dry-run",
        "init --env production",
        "init --home 2 --jurisdiction eu --env production",
      ),
    )
    .action(init);
}

interface InitOptions {
  home?: number;
  location?: string;
  jurisdiction?: string;
  dryRun?: boolean;
}

async function init(this: Command, { home, location, jurisdiction, dryRun = false }: InitOptions): Promise<void> {
  const { env: environment, json = false } = commonOptions(this);
  const output = createOutput(json);
  const place = location ? `location=${location}` : jurisdiction && `jurisdiction=${jurisdiction}`;
  if (home !== undefined) return initHome(environment, { number: home, place: place ?? null }, dryRun, output);
  if (place !== undefined) throw new UserError("--location and --jurisdiction are places of a new home: add --home 2.");
  if (environment === undefined) await initLocally(dryRun, output);
  else await initDeployed(environment, dryRun, output);
}

async function initLocally(dryRun: boolean, output: Output): Promise<void> {
  const state = localState();
  const steps = [
    `Apply the migrations to the local databases in ${shownPath(state.persistTo)}.`,
    `Make the first sealing key in ${shownPath(state.sealingKeys)}, if there is none.`,
  ];
  for (const step of steps) output.note(step);
  if (dryRun) return output.result({ steps, done: false }, () => "Nothing was done: --dry-run.");
  const { homes, close } = await openHomes(undefined);
  try {
    await ensureLocalSealing(homes, state);
  } finally {
    await close();
  }
  output.result({ steps, done: true }, () => "Ready: npm start.");
}

async function initDeployed(environment: string, dryRun: boolean, output: Output): Promise<void> {
  const target = readTarget(loadWrangler(), environment);
  const [first, ...others] = target.homes;
  const made = [first, ...others.filter(hasDatabase)];
  const migrations = made.map(({ database }) => migrateCommand(database.binding, environment));
  if (dryRun) {
    const commands = [...creationCommands(target), ...migrations, putCommand(FIRST_SECRET, environment)].map(
      shownWrangler,
    );
    return output.result({ commands, done: false }, () => dryRunText(target, commands));
  }
  if (!hasDatabase(first)) {
    const commands = creationCommands(target).map(shownWrangler);
    output.result({ commands, done: false }, () => commands.join("\n"));
    throw new UserError(
      `wrangler.toml has no database ID for "${environment}" yet: run the commands above, put the ID that the first prints in place of ${PLACEHOLDER}, and run init again.`,
    );
  }
  for (const migrate of migrations) {
    output.note(shownWrangler(migrate));
    output.note((await runWrangler(migrate)).trim());
  }
  const version = await ensureDeployedKey(environment, output);
  output.result({ sealingKey: version, done: true }, () => `Ready to deploy: npx wrangler deploy --env ${environment}`);
}

/** Makes the first sealing key if there is none. @returns the version of the newest, which every home has then */
async function ensureDeployedKey(environment: string, output: Output): Promise<number> {
  const { homes, close } = await openHomes(environment);
  try {
    const version = await newestVersion(homes);
    if (version > 0) {
      output.note(`There is sealing key ${version} already.`);
      await publishNewestEverywhere(homes);
      return version;
    }
    const made = await makeDeployedSealingKey(homes, workerSecrets(environment, output.note));
    if (!made.isOurs) output.note(`Another administrator made sealing key ${made.version} at the same moment.`);
    return made.version;
  } finally {
    await close();
  }
}

/** The commands that create what wrangler.toml names. The database comes first: its ID goes into the file. */
/** The commands that make the database of home 1, unless it has an ID, and the queues. */
export const creationCommands = ({ homes: [first], queues }: Target): string[][] => [
  ...(hasDatabase(first) ? [] : [createDatabaseCommand(first.database.database_name, first.place)]),
  ...queues.map((queue) => ["queues", "create", queue]),
];

function dryRunText({ homes: [first] }: Target, commands: string[]): string {
  const id = hasDatabase(first)
    ? ""
    : `\nPut the ID that the first prints in place of ${PLACEHOLDER} in wrangler.toml.`;
  return `${commands.join("\n")}\n${id}
The private half of the sealing key goes in by standard input, its public half into D1. FINGERPRINT is the start
of the public half's SHA-256, so that no two keys share a name.`;
}
