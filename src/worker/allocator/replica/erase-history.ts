import { type SQL, sql } from "drizzle-orm";
import { ERASE_CHUNK_ROWS } from "../../../shared/limits/allocator-limits.ts";
import { history } from "../../../shared/schema.ts";
import type { Database } from "../../storage/database.ts";
import { eachOf, orm, type Placeholders, type RowOfStatement, statement } from "../../storage/statement.ts";
import { withoutUser } from "../without-user.ts";
import type { Chunk } from "./erasures.ts";

const isInChunk = (p: Placeholders<Chunk>) =>
  sql`${history.applicationId} = ${p.applicationId} AND ${history.id} > ${p.after} AND ${history.id} <= ${p.through}`;

/** The last row of a chunk; none if it is the last chunk. */
const SELECT_END = statement((p: Placeholders<Chunk>) =>
  orm
    .select({ id: history.id })
    .from(history)
    .where(isInChunk(p))
    .orderBy(history.id)
    .limit(1)
    .offset(ERASE_CHUNK_ROWS - 1),
);

/** Rows in which the user ID stands, perhaps as a part of a word. */
const SELECT_MENTIONS = statement((p: Placeholders<Chunk>) =>
  orm
    .select({
      applicationId: history.applicationId,
      id: history.id,
      actorName: history.actorName,
      reason: history.reason,
    })
    .from(history)
    .where(
      sql`${isInChunk(p)} AND (instr(${history.actorName}, ${p.userId}) > 0 OR instr(${history.reason}, ${p.userId}) > 0)`,
    ),
);

/**
 * Rows that still have the old texts: a statement that comes late does not bring back a user who was erased after this one. Each row
 * has its application, because SQLite would otherwise read the whole history for every row.
 */
const ERASE = statement<{ rows: readonly object[] }, SQL>(({ rows }) => {
  const [actorName, reason] = [history.actorName, history.reason].map(({ name }) => sql.identifier(name));
  const field = (name: string) => sql`row.value ->> ${sql.raw(`'${name}'`)}`;
  return sql`UPDATE ${history} SET ${actorName} = ${field("actorName")}, ${reason} = ${field("reason")}
    FROM ${eachOf(rows)} AS row
    WHERE ${history.applicationId} = ${field("applicationId")} AND ${history.id} = ${field("id")}
      AND ${history.actorName} IS ${field("oldActorName")} AND ${history.reason} IS ${field("oldReason")}`;
});

/**
 * A person in what others wrote about somebody else: names of actors, and reasons. Three round trips.
 *
 * @returns the last row of the chunk; undefined: it was the last chunk
 * @throws Unavailable
 */
export async function eraseFromHistory(db: Database, chunk: Chunk): Promise<string | undefined> {
  const { userId, alias } = chunk;
  const [end] = await db.run((d1) => SELECT_END.all(d1, chunk));
  const found = await db.run((d1) => SELECT_MENTIONS.all(d1, { ...chunk, through: end?.id ?? chunk.through }));
  const erase = withoutUser(userId, alias);
  const rows = found.map((row) => erased(row, erase)).filter((row) => row !== null);
  if (rows.length > 0) await db.run((d1) => ERASE.bind(d1, { rows }).run());
  return end?.id;
}

type Mention = RowOfStatement<typeof SELECT_MENTIONS>;

/** A row with its old and new texts; null: it does not name the user. */
function erased({ actorName: oldActorName, reason: oldReason, ...key }: Mention, erase: (text: string) => string) {
  const [actorName = null, reason = null] = [oldActorName, oldReason].map((text) => text && erase(text));
  return actorName === oldActorName && reason === oldReason
    ? null
    : { ...key, actorName, reason, oldActorName, oldReason };
}
