import { readdirSync } from "node:fs";
import { join } from "node:path";

const MIGRATIONS = join(import.meta.dirname, "../../migrations");

/** Paths of the SQL files that make D1's tables, in the order in which they are applied. */
export function migrationFiles(): string[] {
  const names = readdirSync(MIGRATIONS).filter((name) => name.endsWith(".sql"));
  return names.sort().map((name) => join(MIGRATIONS, name));
}
