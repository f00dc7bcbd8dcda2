import { eq, getTableColumns, type SQLWrapper, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { numberRange } from "../../shared/schema.ts";
import type { Registration } from "../../shared/script-commands.ts";
import type { Database } from "./database.ts";
import { eachOf, orm, type Placeholders, statement } from "./statement.ts";

/** D1's copy of the register of number ranges, in home 1 (contract section 17). Only home 1's scheduler writes it. */

const SELECT = statement(() => orm.select().from(numberRange));

const PUT = statement((p: Placeholders<{ rows: readonly Registration[] }>) => {
  const columns = getTableColumns(numberRange);
  const { applicationId, ...others } = columns;
  const list = (of: Record<string, { name: string }>, write: (column: SQLWrapper, field: string) => SQLWrapper) =>
    sql.join(
      Object.entries(of).map(([field, { name }]) => write(sql.identifier(name), field)),
      sql`, `,
    );
  return sql`INSERT INTO ${numberRange} (${list(columns, (column) => column)})
    SELECT ${list(columns, (_, field) => sql`value ->> ${field}`)} FROM ${eachOf(p.rows)} WHERE true
    ON CONFLICT (${sql.identifier(applicationId.name)}) DO UPDATE
    SET ${list(others, (column) => sql`${column} = excluded.${column}`)}`;
});

/** Rows per statement, so that their JSON stays below D1's limit for a bound value. */
const CHUNK_ROWS = 5000;

const DELETE = statement((p: Placeholders<{ id: ApplicationId }>) =>
  orm.delete(numberRange).where(eq(numberRange.applicationId, p.id)),
);

export const registerCopy = (db: Database) => ({
  /** All registrations. One round trip. */
  list: (): Promise<Registration[]> => db.all(SELECT, {}),

  /** Replaces D1's rows of these applications. One round trip per 5,000 rows. */
  async put(registrations: readonly Registration[]): Promise<void> {
    for (let start = 0; start < registrations.length; start += CHUNK_ROWS) {
      await db.write(PUT, { rows: registrations.slice(start, start + CHUNK_ROWS) });
    }
  },

  /** One round trip. */
  async delete(id: ApplicationId): Promise<void> {
    await db.write(DELETE, { id });
  },
});
