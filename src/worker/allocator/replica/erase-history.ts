import { type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../../../shared/identifiers.ts";
import { ERASE_CHUNK_ROWS, ERASE_MENTIONS } from "../../../shared/limits/allocator-limits.ts";
import { history } from "../../../shared/schema.ts";
import type { Database } from "../../storage/database.ts";
import { columnName, eachOf, orm, type Placeholders, type RowOfStatement, statement } from "../../storage/statement.ts";
import type { ErasedHistory } from "../log-entry.ts";
import { withoutUser } from "../text-without-user.ts";
import type { SearchedChunk } from "./erase-events.ts";

export interface ErasureValues {
  applicationId: ApplicationId;
  userId: string;
  alias: string;
}

/** Erases the person from history of what was done to them. Without INDEXED BY SQLite would read all of it. */
export const ERASE_HISTORY = statement<ErasureValues, SQL>(({ applicationId, userId, alias }) => {
  return sql`UPDATE ${history} INDEXED BY history_user SET ${columnName(history.userId)} = ${alias}, ${columnName(history.reason)} = NULL,
      ${columnName(history.detail)} = NULL
    WHERE ${columnName(history.applicationId)} = ${applicationId} AND ${columnName(history.userId)} = ${userId}`;
});

/** Erases the person from history of what they did themselves. */
export const ERASE_ACTOR = statement<ErasureValues, SQL>(({ applicationId, userId, alias }) => {
  return sql`UPDATE ${history} INDEXED BY history_actor SET ${columnName(history.actorName)} = ${alias}, ${columnName(history.reason)} = NULL
    WHERE ${columnName(history.applicationId)} = ${applicationId} AND ${columnName(history.actorName)} = ${userId}`;
});

const isInChunk = (p: Placeholders<SearchedChunk>) =>
  sql`${history.applicationId} = ${p.applicationId} AND ${history.id} > ${p.after} AND ${history.id} <= ${p.through}`;

/** The last row of a chunk; none if it is the last chunk. */
const SELECT_END = statement((p: Placeholders<SearchedChunk>) =>
  orm
    .select({ id: history.id })
    .from(history)
    .where(isInChunk(p))
    .orderBy(history.id)
    .limit(1)
    .offset(ERASE_CHUNK_ROWS - 1),
);

/** Rows that are read at once. A short user ID is a part of many words. */
const READ_MENTIONS = 5 * ERASE_MENTIONS;

/** Rows in which the user ID stands, perhaps as a part of a word. */
const SELECT_MENTIONS = statement((p: Placeholders<SearchedChunk>) =>
  orm
    .select({ id: history.id, actorName: history.actorName, reason: history.reason })
    .from(history)
    .where(
      sql`${isInChunk(p)} AND (instr(${history.actorName}, ${p.userId}) > 0 OR instr(${history.reason}, ${p.userId}) > 0)`,
    )
    .orderBy(history.id)
    .limit(READ_MENTIONS),
);

/**
 * Stores the texts that `findMentions` returned. Each row names its application, because SQLite would otherwise read
 * the whole history for every row.
 */
export const ERASE_MENTIONED = statement<{ rows: readonly unknown[] }, SQL>(({ rows }) => {
  const [actorName, reason] = [history.actorName, history.reason].map(columnName);
  const field = (name: string) => sql`row.value ->> ${sql.raw(`'${name}'`)}`;
  return sql`UPDATE ${history} SET ${actorName} = ${field("actorName")}, ${reason} = ${field("reason")}
    FROM ${eachOf(rows)} AS row WHERE ${history.applicationId} = ${field("applicationId")} AND ${history.id} = ${field("id")}`;
});

/**
 * A person in what others wrote about somebody else: names of actors, and reasons. Two round trips.
 *
 * @returns rows without the person, and the row after which the search goes on; undefined: it was the last chunk
 * @throws Unavailable
 */
export async function findMentions(
  db: Database,
  chunk: SearchedChunk,
): Promise<{ mentions: ErasedHistory[]; end: string | undefined }> {
  const [last] = await db.allAtPrimary(SELECT_END, chunk);
  const found = await db.allAtPrimary(SELECT_MENTIONS, { ...chunk, through: last?.id ?? chunk.through });
  const erase = withoutUser(chunk.userId, chunk.alias);
  const mentions = found.map((row) => erased(row, erase)).filter((row) => row !== null);
  const [more] = mentions.splice(ERASE_MENTIONS);
  return { mentions, end: more ? mentions.at(-1)?.id : found.length < READ_MENTIONS ? last?.id : found.at(-1)?.id };
}

/** A row without the user; null: it does not name the user. */
function erased(row: RowOfStatement<typeof SELECT_MENTIONS>, erase: (text: string) => string): ErasedHistory | null {
  const [actorName = null, reason = null] = [row.actorName, row.reason].map((text) => text && erase(text));
  return actorName === row.actorName && reason === row.reason ? null : { id: row.id, actorName, reason };
}
