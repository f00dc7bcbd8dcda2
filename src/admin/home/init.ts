import { homeNumber } from "../command-line/arguments.ts";
import { option, rawCommand } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import type { Output } from "../command-line/output.ts";
import { openHomes } from "../command-line/session.ts";
import { ADMIN, DEPLOY, shellWord } from "../command-line/shell.ts";
import { stepsOf } from "../deploy/commands.ts";
import { openDeployment } from "../deploy/deployment.ts";
import { askForPlaceIfNeeded, PLACE_OPTIONS, placeOf, type WantedHome } from "../deploy/place.ts";
import { takeSteps } from "../deploy/steps.ts";
import { formatPath, localState } from "../platform/paths.ts";
import { loadWrangler } from "../platform/wrangler.ts";
import { ensureLocalSealing } from "../sealing-key/local.ts";

export const initCommand = rawCommand("init", {
  summary: "create what the service, or another home of it, needs before it can start",
  description:
    "Creates what the service needs, step by step. It can be run again at any time.\n\n" +
    "Locally: the tables of every home and the first sealing key; npm start does the same. With --env: everything that " +
    "deploy creates before the upload.\n\n" +
    "With --home, also another home: its database at the given --location or --jurisdiction, its lines in " +
    "wrangler.toml, its tables, and the newest sealing key; in a jurisdiction also its own queues. A home's place never " +
    "changes.",
  options: {
    home: option("--home <n>", "create this home, 2 or higher; needs --env", homeNumber),
    ...PLACE_OPTIONS,
    dryRun: option("--dry-run", "show the steps without taking them"),
  },
  examples: ["", "--env production --dry-run", "--home 2 --jurisdiction eu --env production"],
  async action({ environment, output }, { home, dryRun = false, ...options }) {
    const place = placeOf(options);
    if (home === 1) throw new UserError("Home 1 is the one that init creates without --home.");
    if (environment !== undefined) return initDeployed(environment, { number: home ?? 1, place }, dryRun, output);
    if (home !== undefined) {
      throw new UserError("--home needs --env: locally, npm start creates every home that wrangler.toml binds.");
    }
    if (place !== null) throw new UserError("--location and --jurisdiction are for a deployed environment: add --env.");
    await initLocally(dryRun, output);
  },
});

async function initLocally(dryRun: boolean, output: Output): Promise<void> {
  const state = localState();
  const steps = [
    `Apply the migrations to the local databases in ${formatPath(state.persistTo)}.`,
    `Create the first sealing key in ${formatPath(state.sealingKeys)}, if there is none.`,
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

/** `deploy` with its default options, without the upload. */
const PLAN = { isUploaded: false, isForced: false, workersDev: undefined, replication: "auto" } as const;

async function initDeployed(environment: string, wanted: WantedHome, dryRun: boolean, output: Output): Promise<void> {
  const deployment = await openDeployment(loadWrangler(), environment, dryRun ? output.note : undefined);
  const isFirst = wanted.number === 1 || deployment.home(1)?.database.database_id !== undefined;
  if (!isFirst && !dryRun) throw new UserError(`Home ${wanted.number} needs home 1: run ${DEPLOY} first.`);
  const placed = dryRun ? wanted : await askForPlaceIfNeeded(deployment, wanted);
  const steps = await takeSteps(stepsOf(deployment, placed, output, PLAN), dryRun, output);
  if (dryRun) return output.result({ steps, done: false }, () => "Nothing was done: --dry-run.");
  const env = `--env ${shellWord(environment)}`;
  const then =
    wanted.number === 1 ? "" : `, then ${ADMIN} application create --name "First" --home ${wanted.number} ${env}`;
  output.result({ steps, done: true }, () => `Ready to upload: ${DEPLOY}${then}`);
}
