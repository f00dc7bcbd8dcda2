import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { D1Database } from "@cloudflare/workers-types";
import { UserError } from "../command-line/errors.ts";
import { ADMIN } from "../command-line/shell.ts";
import { Database, retryDatabase } from "./database.ts";
import { type Home, Homes } from "./homes.ts";
import { migrateLocally } from "./migrations.ts";
import type { LocalState } from "./paths.ts";
import { type BoundHome, hasDatabase, type Target } from "./target.ts";
import type { Wrangler } from "./wrangler.ts";
import { assertStateWritable } from "./writable.ts";

export interface OpenHomes {
  homes: Homes;
  /** Ends the process behind the databases. */
  close(): Promise<void>;
}

/** Opens the local databases, the same files as the service uses, and brings their tables up to date. */
export async function openLocalHomes(wrangler: Wrangler, target: Target, state: LocalState): Promise<OpenHomes> {
  assertStateWritable(state);
  const opened = await openHomes(wrangler, target, join(state.persistTo, "v3"));
  try {
    await Promise.all(opened.d1s.map((d1) => migrateLocally(d1, wrangler)));
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/**
 * Opens the databases of a deployed environment, through the account that wrangler is logged in to. A further home whose
 * database was not made yet is left out.
 */
export async function openDeployedHomes(wrangler: Wrangler, target: Target): Promise<OpenHomes> {
  const { environment, homes } = target;
  if (!hasDatabase(homes[0])) {
    throw new UserError(
      `The database of "${environment}" has no ID yet: run ${ADMIN} init --env ${environment}, which says how to make it.`,
    );
  }
  return openHomes(wrangler, target, undefined);
}

/**
 * Opens databases through wrangler, with a configuration that has nothing else in it: that is quicker, and wrangler
 * does not warn about bindings that only the Worker has.
 *
 * @param persistPath folder of local data; undefined for the deployed databases
 */
async function openHomes(
  wrangler: Wrangler,
  target: Target,
  persistPath: string | undefined,
): Promise<OpenHomes & { d1s: D1Database[] }> {
  const folder = mkdtempSync(join(tmpdir(), "badge-admin-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  // Even when the command is interrupted.
  process.once("exit", remove);
  const remote = persistPath === undefined;
  const [first, ...others] = target.homes;
  const further = others.filter(hasDatabase);
  try {
    const configPath = join(folder, "wrangler.json");
    writeFileSync(configPath, JSON.stringify(databasesOnlyConfig(target, [first, ...further], remote)));
    const persist = remote ? false : { path: persistPath };
    // When several processes create the local files at once, all but one find them locked.
    const proxy = await retryDatabase(() =>
      wrangler.getPlatformProxy<Record<string, D1Database>>({ configPath, persist, remoteBindings: remote }),
    );
    const close = async () => {
      await proxy.dispose();
      process.off("exit", remove);
      remove();
    };
    const d1s: D1Database[] = [];
    const open = ({ number, place, database: { binding } }: BoundHome): Home => {
      const bound = proxy.env[binding];
      if (bound === undefined) throw new Error(`wrangler did not open ${binding}`);
      d1s.push(bound);
      return { number, place, database: new Database(bound) };
    };
    return { homes: new Homes([open(first), ...further.map(open)]), d1s, close };
  } catch (error) {
    remove();
    throw remote ? new UserError(`Cannot reach the database of "${target.environment}": ${reason(error)}`) : error;
  }
}

function databasesOnlyConfig(
  { worker, accountId, compatibilityDate }: Target,
  homes: readonly BoundHome[],
  remote: boolean,
): object {
  return {
    // Locally not the service's own name: a running service is registered with wrangler under it.
    name: remote ? worker : `${worker}-admin`,
    ...(accountId !== undefined && { account_id: accountId }),
    compatibility_date: compatibilityDate,
    d1_databases: homes.map(({ database }) => ({ ...database, remote })),
  };
}

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));
