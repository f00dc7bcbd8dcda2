import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { D1Database, D1PreparedStatement } from "@cloudflare/workers-types";
import { afterAll, expect, it } from "vitest";
import { inOneRequest } from "../../src/admin/platform/local-d1.ts";
import { closeHomes, openedHomes } from "./support/script.ts";

const folder = mkdtempSync(join(tmpdir(), "badge-admin-test-"));
const { database } = await openedHomes(folder);

/** The script's, and wrangler's, which it is derived from. */
const ours = await database.run((_, d1) => Promise.resolve(d1));
const wranglers: D1Database = Object.getPrototypeOf(ours);

afterAll(async () => {
  await closeHomes();
  rmSync(folder, { recursive: true, force: true });
});

const resultOf = async (call: (d1: D1Database) => Promise<unknown>, d1: D1Database): Promise<unknown> => {
  try {
    return await call(d1);
  } catch (error) {
    return String(error);
  }
};

const VALUES = ["text", 1.5, null, true, ""] as const;
const each = (read: (statement: D1PreparedStatement) => Promise<unknown>) => (d1: D1Database) =>
  read(d1.prepare("SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS a").bind(...VALUES));
const insert = (d1: D1Database, name: string) =>
  d1.prepare("INSERT INTO d1_migrations (name) VALUES (?) RETURNING name").bind(name);

it.each<[string, (d1: D1Database) => Promise<unknown>]>([
  ["all", each(async (statement) => (await statement.all()).results)],
  ["run", each(async (statement) => (await statement.run()).results)],
  ["first", each((statement) => statement.first())],
  ["raw, with two columns of one name", each((statement) => statement.raw())],
  ["first of no rows", (d1) => d1.prepare("SELECT 1 WHERE false").first()],
  ["all of no rows", async (d1) => (await d1.prepare("SELECT 1 WHERE false").all()).results],
  ["a statement that is no SQL", (d1) => d1.prepare("SELEKT 1").all()],
  ["a batch of nothing", (d1) => d1.batch([])],
  ["a batch of which the last statement fails", (d1) => d1.batch([insert(d1, "x"), insert(d1, "x")])],
  [
    "how many rows changed",
    async (d1) => (await d1.prepare("UPDATE d1_migrations SET name = name").run()).meta.changes,
  ],
  [
    "a batch",
    async (d1) =>
      (await d1.batch([insert(d1, "y"), d1.prepare("DELETE FROM d1_migrations WHERE name = 'y'")])).map(
        ({ results, success, meta }) => ({ results, success, changes: meta.changes }),
      ),
  ],
])("the script's local database gives what D1 gives: %s", async (_, call) => {
  expect(await resultOf(call, ours)).toEqual(await resultOf(call, wranglers));
});

it("the script's local database refuses to bind what D1 refuses", () => {
  for (const d1 of [ours, wranglers]) expect(() => d1.prepare("SELECT ?").bind(undefined)).toThrow();
});

it("the script uses D1's own calls where they cannot be shortened", () => {
  const without: D1Database = Object.create(wranglers, { fetcher: { value: undefined } });
  expect(inOneRequest(without)).toBe(without);
});
