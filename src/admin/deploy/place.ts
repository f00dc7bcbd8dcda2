import { HOME_PLACE } from "../../shared/homes.ts";
import { choice, conflictsWith, type OptionValues } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { askOnTerminal } from "../command-line/terminal.ts";
import type { BoundHome } from "../platform/target.ts";
import { withVariable } from "../platform/wrangler-toml.ts";
import type { Deployment } from "./deployment.ts";
import type { Step } from "./steps.ts";

/** A home that is to be there. Its place is null when none was given. */
export type WantedHome = Pick<BoundHome, "number" | "place">;

/** Places of a D1 database, fixed when it is made (D1: Data location). Objects are made at the same places. */
const D1_LOCATIONS = ["wnam", "enam", "weur", "eeur", "apac", "oc"] as const;
/** Queues have the same (Queues: Data location). */
const D1_JURISDICTIONS = ["eu", "us", "fedramp"] as const;

export const PLACE_OPTIONS = {
  location: choice("--location <hint>", "where the database is made, near most devices; asked for once", D1_LOCATIONS),
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

/** The jurisdiction of a place; null for none. */
export function jurisdictionOf(place: string | null | undefined): string | null {
  const [, kind, name = null] = HOME_PLACE.exec(place ?? "") ?? [];
  return kind === "jurisdiction" ? name : null;
}

/**
 * Where a home is made. It is asked for once and kept in wrangler.toml: the Worker makes the home's objects there, and with
 * another place they would be other, empty objects. Until its database is made, another place may be given.
 *
 * @param wanted what the command line says; null for nothing
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
        // Made before places were kept: its objects are wherever they were first called from.
        if (wanted === null) return null;
        throw new UserError(
          kept === null
            ? `wrangler.toml binds home ${number} of "${environment}" without HOME_${number}. If the home has no application yet, add HOME_${number} = "${wanted}" under [env.${environment}.vars]. Otherwise leave it out: its applications would get other, empty objects.`
            : `wrangler.toml has HOME_${number} = "${kept}" for "${environment}", where its database is: leave out the option, for the place of a home never changes.`,
        );
      }
      // Only the first home must have one: others are made wherever D1 chooses.
      if (wanted === null && number > 1) return null;
      return {
        action: wanted === null ? "ask where the data is to be" : `keep "${wanted}", which never changes`,
        async make() {
          const place = wanted ?? (await askForPlace());
          deployment.edit((text) => withVariable(text, environment, `HOME_${number}`, place));
        },
      };
    },
  };
}

const CHOICES = `--location ${D1_LOCATIONS.join("|")} (near most devices), or --jurisdiction ${D1_JURISDICTIONS.join("|")} (where data must stay)`;

/** The place of home 1, asked for before anything is written, if it needs one and nobody has said it. */
export async function askForPlaceIfNeeded(deployment: Deployment, wanted: WantedHome): Promise<WantedHome> {
  const home = deployment.home(1);
  const isKnown = wanted.number !== 1 || wanted.place !== null || home?.place != null;
  if (isKnown || home?.database.database_id !== undefined) return wanted;
  return { ...wanted, place: await askForPlace() };
}

/** @throws UserError when there is no terminal to ask on */
async function askForPlace(): Promise<string> {
  const place = await askOnTerminal(`Where is the data to be? ${CHOICES}: `, (text) => {
    const answer = text.replace(/^--/, "");
    const [name = ""] = answer.split(/[ =]/).slice(-1);
    if (D1_LOCATIONS.some((each) => each === name) && !answer.startsWith("jurisdiction")) return `location=${name}`;
    return D1_JURISDICTIONS.some((each) => each === name) ? `jurisdiction=${name}` : undefined;
  });
  if (place !== null) return place;
  throw new UserError(`Say where the data is to be: ${CHOICES}. It is kept in wrangler.toml.`);
}
