import { sql } from "drizzle-orm";
import type { ApplicationId } from "../../../shared/identifiers.ts";
import { ERASE_CHUNK_ROWS } from "../../../shared/limits/allocator-limits.ts";
import { badge, webhookEvent } from "../../../shared/schema.ts";
import type { Database } from "../../storage/database.ts";
import { columnName, orm, type Placeholders, statement } from "../../storage/statement.ts";
import type { SearchRange } from "../log-entry.ts";

/** Rows of an application that are looked through at once, by their IDs. */
export type SearchedChunk = SearchRange & { applicationId: ApplicationId };

const isInChunk = (p: Placeholders<SearchedChunk>) =>
  sql`${webhookEvent.applicationId} = ${p.applicationId} AND ${webhookEvent.id} > ${p.after} AND ${webhookEvent.id} <= ${p.through}`;

/** The last event of a chunk; none if it is the last chunk. */
const SELECT_END = statement((p: Placeholders<SearchedChunk>) =>
  orm
    .select({ id: webhookEvent.id })
    .from(webhookEvent)
    .where(isInChunk(p))
    .orderBy(webhookEvent.id)
    .limit(1)
    .offset(ERASE_CHUNK_ROWS - 1),
);

/**
 * Deliveries of a person who is erased go on, without the person. An event whose badge still has the user's ID is left alone: the user
 * came back after the erasure, and a wrong clock dated the event before it.
 */
export const ERASE_EVENTS = statement<SearchedChunk, ReturnType<typeof sql>>((p) => {
  const [payload, response] = [webhookEvent.payload, webhookEvent.lastResponse].map(columnName);
  return sql`UPDATE ${webhookEvent} SET ${response} = NULL,
      ${payload} = json_set(json_remove(${payload}, '$.data.metadata', '$.data.name'), '$.data.userId', ${p.alias})
    WHERE ${isInChunk(p)} AND ${payload} ->> '$.data.userId' = ${p.userId} AND NOT EXISTS
      (SELECT 1 FROM ${badge} WHERE ${badge.number} = ${payload} ->> '$.data.id' AND ${badge.userId} = ${p.userId})`;
});

/** One round trip. @returns the last event of the chunk; undefined: it is the last chunk @throws Unavailable */
export async function endOfEvents(db: Database, chunk: SearchedChunk): Promise<string | undefined> {
  const [end] = await db.allAtPrimary(SELECT_END, chunk);
  return end?.id;
}
