import { and, asc, eq, gt, inArray, isNull, lt, lte, sql } from "drizzle-orm";
import { scriptCommand } from "../../shared/schema.ts";
import type { HomeResult, ScriptResult } from "../../shared/script-commands.ts";
import type { Database } from "./database.ts";
import { orm, type Placeholders, statement } from "./statement.ts";

/** Commands of the administration script that wait for the service (contract section 21). */

/** D1's clock, in milliseconds. */
const NOW = sql<number>`cast(unixepoch('subsec') * 1000 AS INTEGER)`;

/** When the oldest command was written that may still be carried out. */
const VALID_SINCE = sql`(${NOW} - 3600000)`;

const isOpen = and(isNull(scriptCommand.result), gt(scriptCommand.createdAt, VALID_SINCE));

/** The script has given the command up. */
export const isGivenUp = lte(scriptCommand.createdAt, VALID_SINCE);

/** Open commands for an allocator, or for the scheduler, oldest first. */
export const SELECT_OPEN = statement((p: Placeholders<{ recipient: string; limit: number }>) =>
  orm
    .select({ id: scriptCommand.id, command: scriptCommand.command })
    .from(scriptCommand)
    .where(and(eq(scriptCommand.recipient, p.recipient), isOpen))
    .orderBy(asc(scriptCommand.createdAt))
    .limit(p.limit),
);

/**
 * The oldest open commands for an application's allocator, or for the scheduler. A command that is older than an hour
 * by D1's clock is ignored: the script has given it up, and only a restore can bring it back. One round trip.
 */
export const readCommands = (
  db: Database,
  recipient: string,
  limit: number,
): Promise<{ id: string; command: string }[]> => db.all(SELECT_OPEN, { recipient, limit });

const STORE = statement(
  (p: Placeholders<{ id: string; result: string }>) =>
    sql`UPDATE ${scriptCommand} SET ${sql.identifier(scriptCommand.result.name)} = ${p.result}
      WHERE ${scriptCommand.id} = ${p.id} AND ${scriptCommand.result} IS NULL`,
);

/** Stores the result of a command that changes none of the application's rows. One round trip. */
export async function storeResult(db: Database, id: string, result: ScriptResult | HomeResult): Promise<void> {
  await db.write(STORE, { id, result: JSON.stringify(result) });
}

const SELECT_RECIPIENTS = statement(() =>
  orm.selectDistinct({ recipient: scriptCommand.recipient }).from(scriptCommand).where(isOpen),
);

/** Recipients with open commands. One round trip. */
export const findRecipients = async (db: Database): Promise<string[]> =>
  (await db.all(SELECT_RECIPIENTS, {})).map(({ recipient }) => recipient);

const DELETE_OLD = statement((p: Placeholders<{ before: number; limit: number }>) => {
  const old = orm
    .select({ id: scriptCommand.id })
    .from(scriptCommand)
    .where(lt(scriptCommand.createdAt, p.before))
    .limit(p.limit);
  return orm.delete(scriptCommand).where(inArray(scriptCommand.id, old));
});

/** Deletes old commands, which no script waits for. @returns their number */
export const deleteOldCommands = (db: Database, before: number, limit: number): Promise<number> =>
  db.write(DELETE_OLD, { before, limit });
