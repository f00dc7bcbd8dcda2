import { databaseBindingOf, HOME_PLACE } from "../../shared/homes.ts";
import { UserError } from "../command-line/errors.ts";
import type { Output } from "../command-line/output.ts";
import { openHomes } from "../command-line/session.ts";
import { ADMIN, shellWord } from "../command-line/shell.ts";
import { hasDatabase, PLACEHOLDER, readTarget, type Target } from "../platform/target.ts";
import { loadWrangler, migrateCommand, runWrangler, shownWrangler } from "../platform/wrangler.ts";
import { publishNewestEverywhere } from "../sealing-key/newest.ts";

/** Places of a D1 database, fixed when it is made (D1: Data location). Objects are made at the same places. */
export const D1_LOCATIONS = ["wnam", "enam", "weur", "eeur", "apac", "oc"] as const;
export const D1_JURISDICTIONS = ["eu", "us", "fedramp"] as const;

/** A home that is to be made. */
interface WantedHome {
  number: number;
  /** `location=weur` or `jurisdiction=eu`; null when none was given. */
  place: string | null;
}

/** Result of `init --home`. */
export interface HomeSteps {
  home: number;
  /** The commands, in their order. */
  commands: string[];
  /** Lines that wrangler.toml lacks. */
  configuration: string[];
  done: boolean;
}

/**
 * Makes what another home of a deployed environment needs, or says how to make it (contract section 17). It can be run
 * again at any time.
 *
 * @throws UserError while wrangler.toml does not bind the home
 */
export async function initHome(
  environment: string | undefined,
  wanted: WantedHome,
  dryRun: boolean,
  output: Output,
): Promise<void> {
  const { number } = wanted;
  if (number === 1) throw new UserError("Home 1 is the one that init makes without --home.");
  if (environment === undefined) {
    throw new UserError("--home needs --env: locally npm start makes every home that wrangler.toml binds.");
  }
  const target = readTarget(loadWrangler(), environment);
  const create = creationCommand(target, wanted);
  const configuration = missingLines(target, environment, wanted);
  const migrate = migrateCommand(databaseBindingOf(number), environment);
  const isMade = create === null && configuration.length === 0;
  const commands = [...(create === null ? [] : [create]), ...(dryRun || isMade ? [migrate] : [])].map(shownWrangler);
  const steps: HomeSteps = { home: number, commands, configuration, done: isMade && !dryRun };
  if (!isMade || dryRun) output.result(steps, () => stepsText(steps, dryRun));
  if (dryRun) return;
  if (!isMade) {
    const place = wanted.place === null ? "" : ` --${wanted.place.replace("=", " ")}`;
    const again = `${ADMIN} init --home ${number}${place} --env ${shellWord(environment)}`;
    throw new UserError(`wrangler.toml does not bind home ${number} of "${environment}" yet: see above, then ${again}`);
  }
  output.note(shownWrangler(migrate));
  output.note((await runWrangler(migrate)).trim());
  const { homes, close } = await openHomes(environment);
  try {
    output.note("Publish the newest sealing key in every home.");
    await publishNewestEverywhere(homes);
  } finally {
    await close();
  }
  output.result(
    steps,
    () =>
      `Home ${number} is ready, its objects ${placeOf(target, number) ?? "near whoever calls them first"}: ` +
      `npx wrangler deploy --env ${environment}, then application create --home ${number}`,
  );
}

const placeOf = ({ homes }: Target, number: number): string | null =>
  homes.find((home) => home.number === number)?.place ?? null;

/** The command that makes the database; null when wrangler.toml has its ID. */
function creationCommand({ homes }: Target, { number, place }: WantedHome): string[] | null {
  const bound = homes.find((home) => home.number === number);
  if (bound !== undefined && hasDatabase(bound)) return null;
  const name = bound?.database.database_name ?? databaseName(homes, number);
  return createDatabaseCommand(name, place ?? bound?.place ?? null);
}

/** @param place `location=weur` or `jurisdiction=eu`; null: wherever D1 chooses */
export function createDatabaseCommand(databaseName: string, place: string | null): string[] {
  const [, kind, where] = HOME_PLACE.exec(place ?? "") ?? [];
  return ["d1", "create", databaseName, ...(kind && where ? [`--${kind}`, where] : [])];
}

const databaseName = ([first]: Target["homes"], number: number): string => `${first.database.database_name}-${number}`;

/** @throws UserError when wrangler.toml gives the home another place */
function missingLines({ homes }: Target, environment: string, { number, place }: WantedHome): string[] {
  const bound = homes.find((home) => home.number === number);
  if (bound?.place && place !== null && bound.place !== place) {
    throw new UserError(
      `wrangler.toml has HOME_${number} = "${bound.place}" for "${environment}", and a home's place never changes.`,
    );
  }
  if (bound !== undefined && hasDatabase(bound) && !bound.place && place !== null) {
    throw new UserError(
      `wrangler.toml binds home ${number} of "${environment}" without HOME_${number}. If the home has no application yet, add ` +
        `HOME_${number} = "${place}" under [env.${environment}.vars]. Otherwise leave it out: its applications would get other, empty objects.`,
    );
  }
  const variable =
    place === null || bound?.place ? [] : [`# under [env.${environment}.vars]:`, `HOME_${number} = "${place}"`, ""];
  if (bound !== undefined) return variable;
  return [
    ...variable,
    `[[env.${environment}.d1_databases]]`,
    `binding = "${databaseBindingOf(number)}"`,
    `database_name = "${databaseName(homes, number)}"`,
    `database_id = "${PLACEHOLDER}"`,
    'migrations_dir = "migrations"',
    "remote = true",
  ];
}

function stepsText({ commands, configuration }: HomeSteps, dryRun: boolean): string {
  const lines = [...commands, ""];
  if (configuration.length > 0) lines.push("Add to wrangler.toml:", "", ...configuration, "");
  if (commands.length > 1 || !dryRun) lines.push(`The ID that d1 create prints goes in place of ${PLACEHOLDER}.`);
  if (dryRun) lines.push("Nothing was done: --dry-run.");
  return lines.join("\n");
}
