import * as z from "zod";
import { databaseBindingOf, HOME_PLACE } from "../../shared/homes.ts";
import { UserError } from "../command-line/errors.ts";
import { WRANGLER_CONFIG } from "./paths.ts";
import type { Wrangler } from "./wrangler.ts";

/** The part of wrangler.toml that this script needs. The databases' entries are passed to wrangler as they are. */
const configSchema = z.object({
  name: z.string(),
  account_id: z.string().optional(),
  compatibility_date: z.string(),
  definedEnvironments: z.array(z.string()).default([]),
  d1_databases: z.array(z.looseObject({ binding: z.string(), database_name: z.string(), database_id: z.string() })),
  vars: z.looseObject({ PUBLIC_URL: z.string().default("") }),
  queues: z.object({ consumers: z.array(z.object({ queue: z.string() })).default([]) }),
});

/** The database ID in wrangler.toml until the administrator replaces it. */
export const PLACEHOLDER = "REPLACE_ME";

/** A home as wrangler.toml binds it (contract section 17). */
export interface BoundHome {
  number: number;
  database: z.infer<typeof configSchema>["d1_databases"][number];
  /** `location=weur` or `jurisdiction=eu`; null when wrangler.toml does not say. */
  place: string | null;
}

/** What a command works on: local state, or a deployed environment. */
export interface Target {
  /** Name of the environment in wrangler.toml; undefined for local state. */
  environment: string | undefined;
  /** Name of the Worker. */
  worker: string;
  accountId: string | undefined;
  compatibilityDate: string;
  /** In ascending order; the first is home 1. */
  homes: readonly [BoundHome, ...BoundHome[]];
  /** Names of the queues, including the dead-letter queue. */
  queues: string[];
  /** As in wrangler.toml; empty when it is not set. `npm start` has its own. */
  publicUrl: string;
}

/** Reads wrangler.toml. */
export function readTarget(wrangler: Wrangler, environment: string | undefined): Target {
  const known = readConfig(wrangler, undefined).definedEnvironments;
  if (environment !== undefined && !known.includes(environment)) {
    throw new UserError(`wrangler.toml has no environment "${environment}": use one of ${known.join(", ") || "none"}.`);
  }
  const config = readConfig(wrangler, environment);
  return {
    environment,
    worker: config.name,
    accountId: config.account_id,
    compatibilityDate: config.compatibility_date,
    homes: boundHomes(config),
    queues: config.queues.consumers.map(({ queue }) => queue),
    publicUrl: config.vars.PUBLIC_URL,
  };
}

/** Whether the database of a home has an ID: without one it was not made yet. */
export const hasDatabase = ({ database }: BoundHome): boolean => !database.database_id.includes(PLACEHOLDER);

const HOME_BINDING = /^DB(?:_([2-9]|[1-9]\d{1,2}))?$/;

function boundHomes({ d1_databases: databases, vars }: z.infer<typeof configSchema>): Target["homes"] {
  const homes = databases.flatMap((database) => {
    const [match, number = "1"] = HOME_BINDING.exec(database.binding) ?? [];
    if (match === undefined) return [];
    return [{ number: Number(number), database, place: readPlace(vars, `HOME_${number}`) }];
  });
  const [first, ...others] = homes.toSorted((one, other) => one.number - other.number);
  if (first?.number !== 1) {
    throw new UserError(`wrangler.toml has no D1 database with binding = "${databaseBindingOf(1)}": add it.`);
  }
  return [first, ...others];
}

/** @throws UserError for a place of another form, which the Worker would refuse at its first call of an object */
function readPlace(vars: Record<string, unknown>, variable: string): string | null {
  const place = vars[variable] ?? "";
  if (place === "") return null;
  if (typeof place === "string" && HOME_PLACE.test(place)) return place;
  throw new UserError(
    `wrangler.toml has ${variable} = ${JSON.stringify(place)}: write "location=weur" or "jurisdiction=eu".`,
  );
}

function readConfig(wrangler: Wrangler, environment: string | undefined): z.infer<typeof configSchema> {
  const args = { config: WRANGLER_CONFIG, ...(environment !== undefined && { env: environment }) };
  return configSchema.parse(wrangler.unstable_readConfig(args, { hideWarnings: true }));
}
