import { getTableColumns, getTableName, type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../../../shared/identifiers.ts";
import { badge, blockedUser, freedNumber, invitation } from "../../../shared/schema.ts";
import type { Database } from "../../storage/database.ts";
import { byShape, eachOf, type Placeholders, query, statement } from "../../storage/statement.ts";
import { ROW_KEYS, type RowTable } from "../log-entry.ts";

interface KeyValues {
  applicationId: ApplicationId;
  keys: readonly (string | number)[];
}

export const ROW_TABLES = { badge, invitation, blockedUser, freedNumber } as const satisfies Record<RowTable, unknown>;

const SELECT_KEYS = byShape(({ table }: { table: RowTable }) =>
  statement((p: Placeholders<KeyValues>) => {
    const target = ROW_TABLES[table];
    const columns: Record<string, { name: string } | undefined> = getTableColumns(target);
    const key = sql.identifier(columns[ROW_KEYS[table]]?.name ?? "");
    return query({ key: sql<string | number>`${sql.identifier(getTableName(target))}.${key}` }, (selected: SQL) => {
      const wanted = sql`(SELECT value FROM ${eachOf(p.keys)})`;
      const isOwn = sql`${target.applicationId} = ${p.applicationId}`;
      return sql`SELECT ${selected} FROM ${target}
        WHERE ${sql.identifier(getTableName(target))}.${key} IN ${wanted} AND ${table === "blockedUser" ? isOwn : sql`+${isOwn}`}`;
    });
  }),
);

/** Which of these rows D1 has, by key. One round trip. @throws Unavailable */
export async function readRowsByKey(
  db: Database,
  applicationId: ApplicationId,
  table: RowTable,
  keys: readonly (string | number)[],
): Promise<Set<string | number>> {
  const rows = await db.allAtPrimary(SELECT_KEYS({ table }), { applicationId, keys });
  return new Set(rows.map(({ key }) => key));
}
