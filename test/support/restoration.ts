import { homeDatabase } from "./home.ts";

/** Tables that D1's Time Travel takes back; credentials do not change in tests of it. */
const TABLES = [
  "badge",
  "invitation",
  "blocked_user",
  "freed_number",
  "application_head",
  "signing_key",
  "script_command",
  "history",
  "webhook_event",
] as const;

const ownerOf = (table: string): string => (table === "script_command" ? "recipient" : "application_id");

export type Snapshot = Map<string, Record<string, unknown>[]>;

export async function takeSnapshot({ id }: { id: string }): Promise<Snapshot> {
  const results = await homeDatabase().batch<Record<string, unknown>>(
    TABLES.map((table) =>
      homeDatabase()
        .prepare(`SELECT * FROM ${table} WHERE ${ownerOf(table)} = ?1`)
        .bind(id),
    ),
  );
  return new Map(TABLES.map((table, place) => [table, results[place]?.results ?? []]));
}

/** Puts an application's rows and its head back as they were: what D1's Time Travel does. */
export async function restore({ id }: { id: string }, snapshot: Snapshot): Promise<void> {
  const statements = TABLES.flatMap((table) => {
    const rows = snapshot.get(table) ?? [];
    const clear = homeDatabase()
      .prepare(`DELETE FROM ${table} WHERE ${ownerOf(table)} = ?1`)
      .bind(id);
    const [first] = rows;
    if (!first) return [clear];
    const columns = Object.keys(first);
    const values = columns.map((column) => `row ->> '${column}'`).join(", ");
    const insert = `INSERT INTO ${table} (${columns.join(", ")}) SELECT ${values} FROM (SELECT value AS row FROM json_each(?1))`;
    return [clear, homeDatabase().prepare(insert).bind(JSON.stringify(rows))];
  });
  await homeDatabase().batch(statements);
}
