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
  d1_databases: z.array(
    z.looseObject({ binding: z.string(), database_name: z.string(), database_id: z.string().optional() }),
  ),
  vars: z.looseObject({ PUBLIC_URL: z.string().default(""), LOG_SAMPLE: z.coerce.string().optional() }),
  queues: z.object({
    producers: z.array(z.object({ binding: z.string(), queue: z.string() })).default([]),
    consumers: z
      .array(
        z.object({
          queue: z.string(),
          max_batch_size: z.number(),
          max_batch_timeout: z.number(),
          max_retries: z.number(),
          retry_delay: z.number(),
          dead_letter_queue: z.string().optional(),
        }),
      )
      .default([]),
  }),
  routes: z
    .array(z.union([z.string(), z.looseObject({ pattern: z.string(), custom_domain: z.boolean().optional() })]))
    .default([]),
  workers_dev: z.boolean().optional(),
  limits: z.object({ cpu_ms: z.number().optional() }).optional(),
  triggers: z.object({ crons: z.array(z.string()).default([]) }),
});

type Config = z.infer<typeof configSchema>;

/** A home as wrangler.toml binds it. */
export type BoundHome = Target["homes"][number];

export type Target = ReturnType<typeof readTarget>;

/** The deployed environments that wrangler.toml has. */
export const definedEnvironments = (wrangler: Wrangler, path = WRANGLER_CONFIG): readonly string[] =>
  readConfig(wrangler, undefined, path).definedEnvironments;

/**
 * What a command works on: local state, or a deployed environment of wrangler.toml.
 *
 * @param environment undefined for local state
 */
export function readTarget(wrangler: Wrangler, environment: string | undefined, path = WRANGLER_CONFIG) {
  const known = definedEnvironments(wrangler, path);
  if (environment !== undefined && !known.includes(environment)) {
    throw new UserError(`wrangler.toml has no environment "${environment}": use one of ${known.join(", ") || "none"}.`);
  }
  const config = readConfig(wrangler, environment, path);
  return {
    environment,
    worker: config.name,
    accountId: config.account_id,
    compatibilityDate: config.compatibility_date,
    homes: boundHomes(config),
    /** Of every queue, including dead-letter queues. */
    consumers: config.queues.consumers,
    /** The queue that each binding sends to. */
    producers: config.queues.producers,
    crons: config.triggers.crons,
    customDomains: customDomainsOf(config),
    /** Whether it has a workers.dev address. With the first route, wrangler ends that unless wrangler.toml says otherwise. */
    isOnWorkersDev: config.workers_dev ?? config.routes.length === 0,
    cpuMilliseconds: config.limits?.cpu_ms,
    /** Empty when it is not set. `npm start` has its own. */
    publicUrl: config.vars.PUBLIC_URL,
    logSample: config.vars.LOG_SAMPLE,
  };
}

/** Empty when the Worker has only a workers.dev address, or other routes. */
const customDomainsOf = ({ routes }: Config): string[] =>
  routes.flatMap((route) => (typeof route === "object" && route.custom_domain ? [route.pattern] : []));

const HOME_BINDING = /^DB(?:_([2-9]|[1-9]\d{1,2}))?$/;

/** In ascending order; the first is home 1. `place`: `location=weur` or `jurisdiction=eu`; null when it is not set. */
function boundHomes({ d1_databases: databases, vars }: Config) {
  const homes = databases.flatMap((database) => {
    const [match, number = "1"] = HOME_BINDING.exec(database.binding) ?? [];
    if (match === undefined) return [];
    return [{ number: Number(number), database, place: readPlace(vars, `HOME_${number}`) }];
  });
  const [first, ...others] = homes.toSorted((one, other) => one.number - other.number);
  if (first?.number !== 1) {
    throw new UserError(`wrangler.toml has no D1 database with binding = "${databaseBindingOf(1)}": add it.`);
  }
  return [first, ...others] as const;
}

/** @throws UserError for a malformed place, which the Worker would refuse at its first call of an object */
function readPlace(vars: Record<string, unknown>, variable: string): string | null {
  const place = vars[variable] ?? "";
  if (place === "") return null;
  if (typeof place === "string" && HOME_PLACE.test(place)) return place;
  throw new UserError(
    `wrangler.toml has ${variable} = ${JSON.stringify(place)}: write "location=weur" or "jurisdiction=eu".`,
  );
}

/** @throws UserError that says where wrangler.toml is wrong */
function readConfig(wrangler: Wrangler, environment: string | undefined, path: string): Config {
  const args = { config: path, ...(environment !== undefined && { env: environment }) };
  try {
    return configSchema.parse(wrangler.unstable_readConfig(args, { hideWarnings: true }));
  } catch (error) {
    const { data } = withLine.safeParse(error);
    const where = data === undefined ? "" : ` at line ${data.location.line}`;
    const reason =
      error instanceof z.ZodError ? z.prettifyError(error) : error instanceof Error ? error.message : error;
    throw new UserError(`wrangler.toml cannot be read${where}: ${reason}`, { cause: error });
  }
}

/** wrangler's errors about the syntax. */
const withLine = z.object({ location: z.object({ line: z.number() }) });
