import * as z from "zod";
import { UserError } from "../errors.ts";
import { WRANGLER_CONFIG } from "./paths.ts";
import type { Wrangler } from "./wrangler.ts";

/** The part of wrangler.toml that this script needs. The database's entry is passed to wrangler as it is. */
const configSchema = z.object({
  name: z.string(),
  account_id: z.string().optional(),
  compatibility_date: z.string(),
  definedEnvironments: z.array(z.string()).default([]),
  d1_databases: z.array(z.looseObject({ binding: z.string(), database_name: z.string(), database_id: z.string() })),
  vars: z.looseObject({ PUBLIC_URL: z.string().default("") }),
  queues: z.object({ consumers: z.array(z.object({ queue: z.string() })).default([]) }),
});

/** What a command works on: local state, or a deployed environment. */
export interface Target {
  /** Name of the environment in wrangler.toml; undefined for local state. */
  environment: string | undefined;
  /** Name of the Worker. */
  worker: string;
  accountId: string | undefined;
  compatibilityDate: string;
  database: z.infer<typeof configSchema>["d1_databases"][number];
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
  const database = config.d1_databases.find(({ binding }) => binding === "DB");
  if (database === undefined) throw new UserError('wrangler.toml has no D1 database with binding = "DB": add it.');
  return {
    environment,
    worker: config.name,
    accountId: config.account_id,
    compatibilityDate: config.compatibility_date,
    database,
    queues: config.queues.consumers.map(({ queue }) => queue),
    publicUrl: config.vars.PUBLIC_URL,
  };
}

function readConfig(wrangler: Wrangler, environment: string | undefined): z.infer<typeof configSchema> {
  const args = { config: WRANGLER_CONFIG, ...(environment !== undefined && { env: environment }) };
  return configSchema.parse(wrangler.unstable_readConfig(args, { hideWarnings: true }));
}
