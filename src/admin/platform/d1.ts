import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { D1Database } from "@cloudflare/workers-types";
import { UserError } from "../command-line/errors.ts";
import { DEPLOY } from "../command-line/shell.ts";
import { type Account, openAccount } from "./cloudflare.ts";
import { Database, retryDatabase } from "./database.ts";
import { type Home, Homes } from "./homes.ts";
import { migrate } from "./migrations.ts";
import type { LocalState } from "./paths.ts";
import { restD1 } from "./rest-d1.ts";
import type { BoundHome, Target } from "./target.ts";
import type { Wrangler } from "./wrangler.ts";
import { assertStateWritable } from "./writable.ts";

/**
 * Opens the local databases, which are the service's own files, and migrates them. wrangler gets a configuration with the
 * databases only: that is faster, and it does not warn about bindings that only the Worker has.
 *
 * @returns the homes, and a function that ends the process behind them
 */
export async function openLocalHomes(wrangler: Wrangler, target: Target, state: LocalState) {
  assertStateWritable(state);
  const folder = mkdtempSync(join(tmpdir(), "badge-admin-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  // Even when the command is interrupted.
  process.once("exit", remove);
  const configPath = join(folder, "wrangler.json");
  // Not the service's name, because wrangler registers a running service under it.
  const name = `${target.worker}-admin`;
  const databases = target.homes.map(({ database }) => database);
  const config = { name, compatibility_date: target.compatibilityDate, d1_databases: databases };
  writeFileSync(configPath, JSON.stringify(config));
  const persist = { path: join(state.persistTo, "v3") };
  // When several processes create the local files at once, all but one find them locked.
  const proxy = await retryDatabase(() =>
    wrangler.getPlatformProxy<Record<string, D1Database>>({ configPath, persist, remoteBindings: false }),
  );
  const close = async () => {
    await proxy.dispose();
    process.off("exit", remove);
    remove();
  };
  const bound = ({ database: { binding } }: BoundHome): D1Database => {
    const d1 = proxy.env[binding];
    if (d1 === undefined) throw new Error(`wrangler did not open ${binding}`);
    return d1;
  };
  try {
    await Promise.all(target.homes.map((home) => migrate(bound(home), wrangler)));
    return { homes: homesOn(target.homes, bound), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens the databases of a deployed environment by D1's REST interface. */
export async function openDeployedHomes(target: Target): Promise<{ homes: Homes; account: Account }> {
  // Fails without a database, before anybody has to log in.
  createdHomes(target);
  const account = await openAccount(target.accountId);
  return { homes: deployedHomes(account, target), account };
}

/** Leaves out further homes whose database does not exist yet. @throws UserError when home 1's does not */
export function deployedHomes(account: Account, target: Target): Homes {
  return homesOn(createdHomes(target), ({ database }) => restD1(account, database.database_id ?? ""));
}

function createdHomes({ environment, homes: [first, ...others] }: Target): Target["homes"] {
  if (first.database.database_id === undefined) {
    throw new UserError(
      `The database of "${environment}" has no ID in wrangler.toml yet: run ${DEPLOY}, which creates it.`,
    );
  }
  return [first, ...others.filter(({ database }) => database.database_id !== undefined)];
}

function homesOn([first, ...others]: Target["homes"], d1Of: (home: BoundHome) => D1Database): Homes {
  const open = (home: BoundHome): Home => ({ ...home, database: new Database(d1Of(home)) });
  return new Homes([open(first), ...others.map(open)]);
}
