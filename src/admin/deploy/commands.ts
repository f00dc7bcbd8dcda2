import { application } from "../../shared/schema.ts";
import { assertPublicUrl } from "../application/settings.ts";
import { serviceAddress } from "../command-line/arguments.ts";
import { negatable, option, rawCommand } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import type { Output } from "../command-line/output.ts";
import { ADMIN, shellWord } from "../command-line/shell.ts";
import { deployedHomes } from "../platform/d1.ts";
import { loadWrangler } from "../platform/wrangler.ts";
import { addressesOf, untilHealthy } from "./address.ts";
import { recordReleaseStep, releaseStep } from "./deployed-release.ts";
import { type Deployment, openDeployment } from "./deployment.ts";
import { environmentStep } from "./environment.ts";
import { startSchedulers } from "./first-tick.ts";
import { planStep } from "./paid-plan.ts";
import { askForPlaceIfNeeded, PLACE_OPTIONS, placeOf, placeStep, type WantedHome } from "./place.ts";
import { registrationStep, rightsStep, workersDevStep } from "./preflight.ts";
import { type ReplicationMode, replicationStep } from "./replication.ts";
import { databaseBindingStep, databaseStep, queueBindingStep, queueStep } from "./resources.ts";
import { type Step, takeSteps } from "./steps.ts";
import { migrationsStep, sealingKeyStep } from "./tables.ts";
import { buildOf, uploadStep } from "./upload.ts";

export const deployCommand = rawCommand("deploy", {
  summary: "create everything that a deployed environment needs, and upload the service",
  description:
    "Deploys the service, step by step: its database, queues and their lines in wrangler.toml, the tables, the first " +
    "sealing key, and the Worker. It then checks /health at each address. Steps that are done already are skipped, so " +
    "run it again after a failure, and after each change. Before it writes anything, it checks the token's rights, the " +
    "account's plan, its workers.dev name and the deployed release. npm run deploy is this command for --env " +
    "production; another name creates another environment like production.",
  options: {
    ...PLACE_OPTIONS,
    address: option(
      "--address <url>",
      "where to check /health, instead of at the service's own addresses",
      serviceAddress,
    ),
    workersDev: option("--workers-dev <name>", "register this workers.dev name, if the account has none", String),
    replicas: negatable(
      option("--replicas", "switch D1's read replication on (the default)"),
      "switch D1's read replication off",
    ),
    force: option("--force", "deploy although this checkout is older than what is deployed"),
    check: option("--check", "show what would be done, without doing it"),
  },
  examples: ["--env production --location weur", "--env production --check", "--env staging --location weur"],
  async action({ environment, output }, options) {
    if (environment === undefined) throw new UserError("Say which environment: add --env production.");
    const { address: given, check = false, workersDev, replicas = true, force = false } = options;
    const wrangler = loadWrangler();
    const deployment = await openDeployment(wrangler, environment, check ? output.note : undefined, true);
    const { publicUrl } = deployment.target;
    if (publicUrl !== "") assertPublicUrl(publicUrl, environment);
    const place = { number: 1, place: placeOf(options) };
    const wanted = check ? place : await askForPlaceIfNeeded(deployment, place);
    const isNew = !deployment.isDefined;
    const plan = {
      isUploaded: true,
      isForced: force,
      workersDev,
      replication: replicas ? "auto" : "disabled",
    } as const;
    const steps = await takeSteps(stepsOf(deployment, wanted, output, plan), check, output);
    const changes = steps.filter(({ state }) => state !== "unchanged").length;
    if (check) {
      const text = changes === 0 ? "Nothing would change." : `${changes} of ${steps.length} steps would be taken.`;
      return output.result({ environment, steps, done: false }, () => text);
    }
    const [address, ...others] = await addressesOf(deployment, given);
    const build = buildOf();
    for (const each of [address, ...others]) {
      await untilHealthy(each, environment, output.note, build);
      output.note(`✓ ${each}/health`);
    }
    await startSchedulers(deployment, deployedHomes(deployment.account, deployment.target), output.note);
    const next = (await hasApplication(deployment)) ? "doctor" : 'application create --name "First" --require-secret';
    output.result({ environment, address, addresses: [address, ...others], steps, done: true }, () =>
      [
        changes === 0 ? `Nothing changed: the service runs at ${address}.` : `The service runs at ${address}.`,
        ...(isNew ? ["wrangler.toml has a new environment: run npm run types, and commit both."] : []),
        `Next: ${ADMIN} ${next} --env ${shellWord(environment)}`,
      ].join("\n"),
    );
  },
});

async function hasApplication({ account, target }: Deployment): Promise<boolean> {
  const found = await deployedHomes(account, target).map(({ database }) =>
    database.run((orm) => orm.select({ id: application.id }).from(application).limit(1)),
  );
  return found.flat().length > 0;
}

interface DeploymentPlan {
  /** Whether the Worker is uploaded at the end. */
  isUploaded: boolean;
  /** Whether an older checkout may deploy. */
  isForced: boolean;
  /** The workers.dev name to register if the account has none. */
  workersDev: string | undefined;
  replication: ReplicationMode;
}

/**
 * Everything that an environment needs, in order. Each step is created only after the one before it has run, because
 * steps read wrangler.toml and change it. The first four check the token's rights, the release, the workers.dev name
 * and the plan, so that a failure leaves nothing useless behind; a new workers.dev name is registered after them.
 */
export function* stepsOf(
  deployment: Deployment,
  wanted: WantedHome,
  output: Output,
  { isUploaded, isForced, workersDev, replication }: DeploymentPlan,
): Generator<Step> {
  const chosen: { name: string | null } = { name: null };
  // Without an account there is nothing to check.
  if (!deployment.isOffline) {
    yield rightsStep(deployment);
    yield releaseStep(deployment, isForced);
    yield workersDevStep(deployment, workersDev, (name) => {
      chosen.name = name;
    });
  }
  yield planStep(deployment);
  if (chosen.name !== null) yield registrationStep(deployment, chosen.name);
  yield environmentStep(deployment);
  const numbers = new Set([1, ...deployment.target.homes.map(({ number }) => number), wanted.number]);
  for (const number of [...numbers].toSorted((one, other) => one - other)) {
    const place = number === wanted.number ? wanted.place : null;
    yield databaseBindingStep(deployment, number);
    // Creating a further home does not ask for the place of home 1.
    if (number !== 1 || wanted.number === 1) yield placeStep(deployment, number, place);
    yield queueBindingStep(deployment, number, place);
    const isNew = deployment.home(number)?.database.database_id === undefined;
    yield databaseStep(deployment, number, place);
    // init leaves the replication of the homes that exist as it is.
    if (isUploaded || isNew) yield replicationStep(deployment, number, replication);
    yield migrationsStep(deployment, number);
  }
  for (const { queue } of deployment.target.consumers) yield queueStep(deployment, queue);
  yield sealingKeyStep(deployment, output);
  // `init` uploads nothing: it prepares a gradual deployment of this release, or adds a home.
  if (isUploaded || wanted.number === 1) yield recordReleaseStep(deployment, isForced);
  if (isUploaded) yield uploadStep(deployment);
}
