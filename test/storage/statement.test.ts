import { eq, sql } from "drizzle-orm";
import { integer, sqliteTable } from "drizzle-orm/sqlite-core";
import { expect, it } from "vitest";
import { orm, statement } from "../../src/worker/storage/statement.ts";

const person = sqliteTable("test_person", { id: integer("id").primaryKey() });
const visit = sqliteTable("test_visit", { id: integer("id").primaryKey(), personId: integer("person_id").notNull() });

it("a statement refuses two columns of one name, because a batch would give one value for both", () => {
  const joined = (id: typeof visit.id | ReturnType<typeof aliased>) =>
    statement(() =>
      orm.select({ id: person.id, visit: id }).from(person).innerJoin(visit, eq(visit.personId, person.id)),
    );
  const aliased = () => sql`${visit.id}`.mapWith(visit.id).as("visit");
  expect(() => joined(visit.id).sql).toThrow("equal columns");
  expect(joined(aliased()).sql).toContain(`as "visit"`);
});
