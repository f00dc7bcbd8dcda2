import { HOME_PLACE } from "../../shared/homes.ts";
import { choice, conflictsWith, type OptionValues } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { askOnTerminal } from "../command-line/terminal.ts";
import type { BoundHome } from "../platform/target.ts";
import { withVariable } from "../platform/wrangler-toml.ts";
import type { Deployment } from "./deployment.ts";
import type { Step } from "./steps.ts";

/** A home to create. Its place is null when none was given. */
export type WantedHome = Pick<BoundHome, "number" | "place">;

/** Locations of a D1 database, fixed when it is created (D1: Data location). Objects have the same ones. */
const D1_LOCATIONS = ["wnam", "enam", "weur", "eeur", "apac", "oc"] as const;
/** Queues have the same jurisdictions (Queues: Data location). */
const D1_JURISDICTIONS = ["eu", "us", "fedramp"] as const;

export const PLACE_OPTIONS = {
  location: choice(
    "--location <hint>",
    "where to create the database, near most devices; asked for once",
    D1_LOCATIONS,
  ),
  jurisdiction: conflictsWith(
    "location",
    choice("--jurisdiction <name>", "where the data must stay; asked for once", D1_JURISDICTIONS),
  ),
};

/** `location=weur` or `jurisdiction=eu`, as the variables `HOME_1` and so on have it; null when neither was given. */
export function placeOf({ location, jurisdiction }: OptionValues<typeof PLACE_OPTIONS>): string | null {
  if (location !== undefined) return `location=${location}`;
  return jurisdiction === undefined ? null : `jurisdiction=${jurisdiction}`;
}

/** The jurisdiction of a place; null if it is not one. */
export function jurisdictionOf(place: string | null | undefined): string | null {
  const [, kind, name = null] = HOME_PLACE.exec(place ?? "") ?? [];
  return kind === "jurisdiction" ? name : null;
}

/**
 * Records a home's place in wrangler.toml. It never changes once the database exists: the Worker creates the home's objects
 * there, and at another place they would be new, empty objects.
 *
 * @param wanted the place on the command line; null if there is none
 */
export function placeStep(deployment: Deployment, number: number, wanted: string | null): Step {
  const { environment } = deployment;
  return {
    name: `Place of home ${number} (HOME_${number} in wrangler.toml)`,
    async inspect() {
      const home = deployment.home(number);
      const kept = home?.place ?? null;
      if (wanted === null ? kept !== null : wanted === kept) return null;
      if (home?.database.database_id !== undefined) {
        // Created before places were recorded: its objects are where they were first called from.
        if (wanted === null) return null;
        throw new UserError(
          kept === null
            ? `wrangler.toml binds home ${number} of "${environment}" without HOME_${number}. If the home has no application yet, add HOME_${number} = "${wanted}" under [env.${environment}.vars]. Otherwise leave out the option: its applications would get new, empty objects.`
            : `wrangler.toml has HOME_${number} = "${kept}" for "${environment}", where its database is: leave out the option, because a home's place never changes.`,
        );
      }
      return {
        action: wanted === null ? "ask where the data should be" : `record "${wanted}", which never changes`,
        async make() {
          const place = wanted ?? (await askForPlace(number));
          deployment.edit((text) => withVariable(text, environment, `HOME_${number}`, place));
        },
      };
    },
  };
}

const CHOICES = `--location ${D1_LOCATIONS.join("|")} (near most devices), or --jurisdiction ${D1_JURISDICTIONS.join("|")} (where data must stay)`;

/** Asks for the place of a new home if none was given, before anything is written. */
export async function askForPlaceIfNeeded(deployment: Deployment, wanted: WantedHome): Promise<WantedHome> {
  const home = deployment.home(wanted.number);
  if (wanted.place !== null || home?.place != null || home?.database.database_id !== undefined) return wanted;
  return { ...wanted, place: await askForPlace(wanted.number) };
}

/** @throws UserError when there is no terminal to ask on */
async function askForPlace(number: number): Promise<string> {
  const place = await askOnTerminal(`Where should the data of home ${number} be? ${CHOICES}: `, (text) => {
    const answer = text.replace(/^--/, "");
    const [name = ""] = answer.split(/[ =]/).slice(-1);
    if (D1_LOCATIONS.some((each) => each === name) && !answer.startsWith("jurisdiction")) return `location=${name}`;
    return D1_JURISDICTIONS.some((each) => each === name) ? `jurisdiction=${name}` : undefined;
  });
  if (place !== null) return place;
  const command = number === 1 ? "" : `init --home ${number} with `;
  throw new UserError(`Say where the data should be: ${command}${CHOICES}. wrangler.toml records it.`);
}
