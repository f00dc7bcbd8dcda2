import { and, eq, sql } from "drizzle-orm";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { beforeEach, expect, expectTypeOf, it } from "vitest";
import { byShape, eachOf, orm, type Placeholders, query, statement } from "../../src/worker/storage/statement.ts";
import { homeDatabase, runSql } from "../support/home.ts";

const person = sqliteTable("test_person", {
  id: integer("id").primaryKey(),
  fullName: text("full_name"),
  isGuest: integer("is_guest", { mode: "boolean" }).notNull(),
  device: text("device", { mode: "json" }).$type<{ os: string }>(),
});
const visit = sqliteTable("test_visit", { id: integer("id").primaryKey(), personId: integer("person_id").notNull() });

const INSERT = statement((p: Placeholders<typeof person.$inferInsert>) =>
  orm.insert(person).values({ id: p.id, fullName: p.fullName, isGuest: p.isGuest, device: p.device }),
);
const FIND = statement((p: Placeholders<{ id: number }>) =>
  orm
    .select({ id: person.id, fullName: person.fullName, isGuest: person.isGuest, device: person.device })
    .from(person)
    .where(eq(person.id, p.id)),
);
const ANNA = { id: 1, fullName: "Anna O'Neill", isGuest: true, device: { os: "iOS" } };
const BEN = { id: 2, fullName: null, isGuest: false, device: null };

beforeEach(async () => {
  for (const table of ["test_person", "test_visit"]) await runSql(`DROP TABLE IF EXISTS ${table}`);
  await runSql(
    "CREATE TABLE test_person (id INTEGER PRIMARY KEY, full_name TEXT, is_guest INTEGER NOT NULL, device TEXT)",
  );
  await runSql("CREATE TABLE test_visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL)");
  await homeDatabase().batch([ANNA, BEN].map((row) => INSERT.bind(homeDatabase(), row)));
});

it("a statement writes and reads a row as the schema says, alone and in a batch", async () => {
  expectTypeOf<Awaited<ReturnType<typeof FIND.all>>[number]>().toEqualTypeOf<typeof person.$inferSelect>();
  expect(await FIND.all(homeDatabase(), { id: 1 })).toEqual([ANNA]);
  expect(await FIND.all(homeDatabase(), { id: 2 })).toEqual([BEN]);
  const [one, other, none] = await homeDatabase().batch([1, 2, 3].map((id) => FIND.bind(homeDatabase(), { id })));
  expect([FIND.rows(one), FIND.rows(other), FIND.rows(none), FIND.rows(undefined)]).toEqual([[ANNA], [BEN], [], []]);
});

it("a statement has constants in its text, where partial indexes see them, and binds a placeholder once", () => {
  const found = statement((p: Placeholders<{ name: string }>) =>
    orm
      .select({ id: person.id })
      .from(person)
      .where(and(eq(person.isGuest, true), eq(person.fullName, "it's"), sql`${p.name} = ${p.name}`)),
  );
  expect(found.sql).toContain(`"is_guest" = 1 and "test_person"."full_name" = 'it''s' and ?1 = ?1`);
});

it("a statement refuses two columns of one name, because a batch would give one value for both", () => {
  const joined = (id: typeof visit.id | ReturnType<typeof aliased>) =>
    statement(() =>
      orm.select({ id: person.id, visit: id }).from(person).innerJoin(visit, eq(visit.personId, person.id)),
    );
  const aliased = () => sql`${visit.id}`.mapWith(visit.id).as("visit");
  expect(() => joined(visit.id).sql).toThrow("equal columns");
  expect(joined(aliased()).sql).toContain(`as "visit"`);
});

it("a statement takes an SQL text for what Drizzle lacks, and maps its fields by the schema", async () => {
  const guests = statement((p: Placeholders<{ ids: readonly number[] }>) =>
    query(
      { person: person.id, isGuest: person.isGuest, size: sql<number>`length(${person.fullName})`.as("other") },
      (columns) => sql`SELECT ${columns} FROM ${eachOf(p.ids)} AS wanted JOIN ${person} ON ${person.id} = wanted.value
        ORDER BY ${person.id}`,
    ),
  );
  const expected = [
    { person: 1, isGuest: true, size: 12 },
    { person: 2, isGuest: false, size: null },
  ];
  expect(await guests.all(homeDatabase(), { ids: [1, 2, 3] })).toEqual(expected);
  const [batched] = await homeDatabase().batch([guests.bind(homeDatabase(), { ids: [2] })]);
  expect(guests.rows(batched)).toEqual(expected.slice(1));
});

it("a statement is built once for each shape", () => {
  let built = 0;
  const shapes = byShape(({ state, isNewest }: { state: string | null; isNewest: boolean }) => {
    built++;
    return `${state} ${isNewest}`;
  });
  expect(
    [
      { state: null, isNewest: true },
      { state: "null", isNewest: true },
    ].map(shapes),
  ).toEqual(["null true", "null true"]);
  shapes({ state: null, isNewest: true });
  expect(built).toBe(2);
});
