import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { D1Database } from "@cloudflare/workers-types";
import { UserError } from "../command-line/errors.ts";
import { retryDatabase } from "./database.ts";
import { MIGRATIONS } from "./paths.ts";
import type { Wrangler } from "./wrangler.ts";

/** wrangler's table of applied migrations, created as wrangler does, so that `wrangler d1 migrations` recognizes it. */
const CREATE_BOOKKEEPING = `CREATE TABLE IF NOT EXISTS "d1_migrations"(
		id         INTEGER PRIMARY KEY AUTOINCREMENT,
		name       TEXT UNIQUE,
		applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`;

const OTHER_LOCAL_VERSION =
  "The local data was made by another version of the service, which this one cannot read: npm run reset";

/** Paths of D1's migrations, in their order. */
export const migrationFiles = (): string[] =>
  readdirSync(MIGRATIONS)
    .filter((name) => name.endsWith(".sql"))
    .sort()
    .map((name) => join(MIGRATIONS, name));

const migrationNames = (): string[] => migrationFiles().map((file) => basename(file));

/**
 * Brings a database up to date. Each migration and its record are one transaction; if two processes do this at once, one of
 * them finds it done.
 *
 * @param otherVersion the error's message when another version of the service has made the database
 * @returns the names of the migrations that were applied
 * @throws UserError with that message
 */
export async function migrate(
  database: D1Database,
  wrangler: Wrangler,
  otherVersion = OTHER_LOCAL_VERSION,
): Promise<string[]> {
  const names = migrationNames();
  const applied = await retryDatabase(() => appliedMigrations(database));
  // No migration converts data from before the first release.
  if (applied.some((name) => !names.includes(name))) throw new UserError(otherVersion);
  const missing = names.filter((name) => !applied.includes(name));
  for (const name of missing) {
    const statements = wrangler.unstable_splitSqlQuery(readFileSync(join(MIGRATIONS, name), "utf8"));
    await retryDatabase(() => apply(database, name, statements));
  }
  return missing;
}

async function apply(database: D1Database, name: string, statements: string[]): Promise<void> {
  try {
    await database.batch([
      database.prepare(CREATE_BOOKKEEPING),
      ...statements.map((statement) => database.prepare(statement)),
      database.prepare('INSERT INTO "d1_migrations" (name) VALUES (?)').bind(name),
    ]);
  } catch (error) {
    if ((await missingMigrations(database)).includes(name)) throw error;
  }
}

/** Names of the migrations that a database lacks, in their order. */
export async function missingMigrations(database: D1Database): Promise<string[]> {
  const applied = await retryDatabase(() => appliedMigrations(database));
  return migrationNames().filter((name) => !applied.includes(name));
}

async function appliedMigrations(database: D1Database): Promise<string[]> {
  try {
    const { results } = await database.prepare('SELECT name FROM "d1_migrations"').all<{ name: string }>();
    return results.map(({ name }) => name);
  } catch (error) {
    if (error instanceof Error && error.message.includes("no such table")) return [];
    throw error;
  }
}
