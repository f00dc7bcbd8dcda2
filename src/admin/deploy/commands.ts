import { application } from "../../shared/schema.ts";
import { assertPublicUrl } from "../application/settings.ts";
import { option, rawCommand } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import type { Output } from "../command-line/output.ts";
import { ADMIN, shellWord } from "../command-line/shell.ts";
import { deployedHomes } from "../platform/d1.ts";
import type { BoundHome } from "../platform/target.ts";
import { loadWrangler } from "../platform/wrangler.ts";
import { addressOf, untilHealthy } from "./address.ts";
import { type Deployment, openDeployment } from "./deployment.ts";
import { PLACE_OPTIONS, placeOf, placeStep } from "./place.ts";
import { databaseBindingStep, databaseStep, queueBindingStep, queueStep } from "./resources.ts";
import { type Step, takeSteps } from "./steps.ts";
import { migrationsStep, sealingKeyStep } from "./tables.ts";
import { uploadStep } from "./upload.ts";

export const deployCommand = rawCommand("deploy", {
  summary: "make everything that a deployed environment needs, and upload the service",
  description:
    "Deploys the service, step by step: its database, queues and their lines in wrangler.toml, the tables, the first " +
    "sealing key, the Worker; then checks /health at its address. A step that is done already is left out, so run it " +
    "again after a failure, and after each change. npm run deploy is this command for --env production.",
  options: {
    ...PLACE_OPTIONS,
    address: option(
      "--address <url>",
      "where /health is checked, if the service is not reached at its own address",
      String,
    ),
    check: option("--check", "show what would be done, and do nothing"),
  },
  examples: ["--env production --location weur", "--env production --check"],
  async action({ environment, output }, { address: given, check = false, ...place }) {
    if (environment === undefined) throw new UserError("Say which environment: add --env production.");
    const deployment = await openDeployment(loadWrangler(), environment, check ? output.note : undefined);
    const { publicUrl } = deployment.target;
    if (publicUrl !== "") assertPublicUrl(publicUrl, environment);
    const wanted = { number: 1, place: placeOf(place) };
    const steps = await takeSteps(stepsOf(deployment, wanted, output, true), check, output);
    const changes = steps.filter(({ state }) => state !== "there").length;
    if (check) {
      const text = changes === 0 ? "Nothing would change." : `${changes} of ${steps.length} steps would be taken.`;
      return output.result({ environment, steps, done: false }, () => text);
    }
    const address = await addressOf(deployment, given);
    await untilHealthy(address, environment, output.note);
    output.note(`✓ ${address}/health`);
    const next = (await hasApplication(deployment)) ? "doctor" : 'application create --name "First" --require-secret';
    output.result({ environment, address, steps, done: true }, () =>
      [
        changes === 0 ? `Nothing changed: the service runs at ${address}.` : `The service runs at ${address}.`,
        `Next: ${ADMIN} ${next} --env ${shellWord(environment)}`,
      ].join("\n"),
    );
  },
});

async function hasApplication({ account, target }: Deployment): Promise<boolean> {
  const found = await deployedHomes(account, target).everywhere(({ database }) =>
    database.run((orm) => orm.select({ id: application.id }).from(application).limit(1)),
  );
  return found.flat().length > 0;
}

/** A home that is to be there. Its place is null when none was given. */
export type WantedHome = Pick<BoundHome, "number" | "place">;

/**
 * Everything that an environment needs, in order: what comes later uses what came before. Later steps are made only when the
 * ones before are taken, because those change wrangler.toml.
 */
export function* stepsOf(
  deployment: Deployment,
  wanted: WantedHome,
  output: Output,
  isUploaded: boolean,
): Generator<Step> {
  const numbers = new Set([1, ...deployment.target.homes.map(({ number }) => number), wanted.number]);
  for (const number of [...numbers].toSorted((one, other) => one - other)) {
    const place = number === wanted.number ? wanted.place : null;
    yield databaseBindingStep(deployment, number);
    // The first deployment asks for home 1's; a further home does not.
    if (number !== 1 || wanted.number === 1) yield placeStep(deployment, number, place);
    yield queueBindingStep(deployment, number, place);
    yield databaseStep(deployment, number, place);
    yield migrationsStep(deployment, number);
  }
  for (const { queue } of deployment.target.consumers) yield queueStep(deployment, queue);
  yield sealingKeyStep(deployment, output);
  if (isUploaded) yield uploadStep(deployment);
}
