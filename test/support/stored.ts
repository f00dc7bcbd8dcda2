import { runInDurableObject } from "cloudflare:test";
import { z } from "zod";
import { allocatorOf } from "./allocator.ts";
import { homeDatabase } from "./home.ts";

const tableNames = z.array(z.object({ name: z.string() }));

/** What an application's object keeps of its application. */
const OBJECT_TABLES = ["badge", "blocked_user", "entry", "erasure", "freed_number", "invitation"];

/** All rows of all tables of D1, and what the objects of these applications keep, by name of the table. */
export async function everythingStored(applications: readonly { id: string }[]): Promise<Record<string, unknown[]>> {
  const tables = await homeDatabase()
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\' AND name NOT LIKE 'sqlite%'",
    )
    .all();
  const names = tableNames.parse(tables.results).map(({ name }) => name);
  const rows = await homeDatabase().batch(names.map((name) => homeDatabase().prepare(`SELECT * FROM ${name}`)));
  const ofObjects = await Promise.all(applications.map((application) => objectTables(application)));
  return Object.fromEntries([...names.map((name, place) => [name, rows[place]?.results ?? []]), ...ofObjects.flat()]);
}

function objectTables(application: { id: string }): Promise<[name: string, rows: unknown[]][]> {
  return runInDurableObject(allocatorOf(application), (_, { storage }) =>
    OBJECT_TABLES.map((table) => [
      `${table} of ${application.id}`,
      storage.sql.exec(`SELECT * FROM ${table}`).toArray(),
    ]),
  );
}
