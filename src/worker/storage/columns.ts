import { getTableColumns } from "drizzle-orm";
import type * as z from "zod";

type Table = Parameters<typeof getTableColumns>[0];

/** The name of a column in SQL. @throws Error for a name that the table does not have */
export function columnName(table: Table, column: string): string {
  const found = getTableColumns(table)[column];
  if (!found) throw new Error(`no column ${column}`);
  return found.name;
}

/** What a statement selects for the fields of a row, which have the names of src/shared/schema.ts. @param sql the table's name */
export const selectOf = (table: Table, sql: string, row: z.ZodObject): string =>
  Object.keys(row.shape)
    .map((name) => `${sql}.${columnName(table, name)} AS ${name}`)
    .join(", ");
