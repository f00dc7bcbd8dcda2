import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { D1Database } from "@cloudflare/workers-types";
import { UserError } from "../errors.ts";
import { ADMIN } from "../shell.ts";
import { retryDatabase } from "./database.ts";
import { migrateLocally } from "./migrations.ts";
import type { LocalState } from "./paths.ts";
import type { Target } from "./target.ts";
import type { Wrangler } from "./wrangler.ts";
import { assertStateWritable } from "./writable.ts";

export interface OpenD1 {
  d1: D1Database;
  /** Ends the process behind the database. */
  close(): Promise<void>;
}

/** Opens local D1, the same files as the service uses, and brings its tables up to date. */
export async function openLocalD1(wrangler: Wrangler, target: Target, state: LocalState): Promise<OpenD1> {
  assertStateWritable(state);
  const opened = await openD1(wrangler, target, join(state.persistTo, "v3"));
  try {
    await migrateLocally(opened.d1, wrangler);
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Opens the D1 of a deployed environment, through the account that wrangler is logged in to. */
export async function openDeployedD1(wrangler: Wrangler, target: Target): Promise<OpenD1> {
  const { environment, database } = target;
  if (database.database_id.includes("REPLACE_ME")) {
    throw new UserError(
      `The database of "${environment}" has no ID yet: run ${ADMIN} init --env ${environment}, which says how to make it.`,
    );
  }
  return openD1(wrangler, target, undefined);
}

/**
 * Opens a database through wrangler, with a configuration that has nothing else in it: that is quicker, and wrangler
 * does not warn about bindings that only the Worker has.
 *
 * @param persistPath folder of local data; undefined for the deployed database
 */
async function openD1(wrangler: Wrangler, target: Target, persistPath: string | undefined): Promise<OpenD1> {
  const folder = mkdtempSync(join(tmpdir(), "badge-admin-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  // Even when the command is interrupted.
  process.once("exit", remove);
  const remote = persistPath === undefined;
  try {
    const configPath = join(folder, "wrangler.json");
    writeFileSync(configPath, JSON.stringify(databaseOnlyConfig(target, remote)));
    const persist = remote ? false : { path: persistPath };
    // When several processes create the local files at once, all but one find them locked.
    const proxy = await retryDatabase(() =>
      wrangler.getPlatformProxy<{ DB: D1Database }>({ configPath, persist, remoteBindings: remote }),
    );
    const close = async () => {
      await proxy.dispose();
      process.off("exit", remove);
      remove();
    };
    return { d1: proxy.env.DB, close };
  } catch (error) {
    remove();
    throw remote ? new UserError(`Cannot reach the database of "${target.environment}": ${reason(error)}`) : error;
  }
}

function databaseOnlyConfig({ worker, accountId, compatibilityDate, database }: Target, remote: boolean): object {
  return {
    // Locally not the service's own name: a running service is registered with wrangler under it.
    name: remote ? worker : `${worker}-admin`,
    ...(accountId !== undefined && { account_id: accountId }),
    compatibility_date: compatibilityDate,
    d1_databases: [{ ...database, remote }],
  };
}

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));
