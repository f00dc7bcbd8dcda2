import { getTableColumns } from "drizzle-orm";

/** The name of a column in SQL. @throws Error for a name that the table does not have */
export function columnName(table: Parameters<typeof getTableColumns>[0], column: string): string {
  const found = getTableColumns(table)[column];
  if (!found) throw new Error(`no column ${column}`);
  return found.name;
}
