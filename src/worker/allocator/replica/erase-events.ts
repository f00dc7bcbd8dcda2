import { and, eq, sql } from "drizzle-orm";
import type { ApplicationId } from "../../../shared/identifiers.ts";
import { ERASE_CHUNK_EVENTS } from "../../../shared/limits.ts";
import { webhookEvent } from "../../../shared/schema.ts";
import type { Database } from "../../storage/database.ts";
import { orm, type Placeholders, statement } from "../../storage/statement.ts";
import { erasure } from "../tables/schema.ts";
import type { Tables } from "../tables/tables.ts";

/**
 * Webhook events have no index by user, so those of an erased user are looked through in chunks, beside other work. Each statement
 * may come late or twice: it concerns events that were made before the erasure, and finds no user ID that is gone already.
 */

interface ChunkValues {
  applicationId: ApplicationId;
  after: string;
  through: string;
}

const isInChunk = (p: Pick<Placeholders<ChunkValues>, keyof ChunkValues>) =>
  sql`${webhookEvent.applicationId} = ${p.applicationId} AND ${webhookEvent.id} > ${p.after} AND ${webhookEvent.id} <= ${p.through}`;

/** The last event of a chunk; none if it is the last chunk. */
const SELECT_END = statement((p: Placeholders<ChunkValues>) =>
  orm
    .select({ id: webhookEvent.id })
    .from(webhookEvent)
    .where(isInChunk(p))
    .orderBy(webhookEvent.id)
    .limit(1)
    .offset(ERASE_CHUNK_EVENTS - 1),
);

/** Deliveries of a person who is erased go on, without the person. */
const ERASE = statement<ChunkValues & { userId: string; alias: string }, ReturnType<typeof sql>>((p) => {
  const [payload, response] = [webhookEvent.payload, webhookEvent.lastResponse].map(({ name }) => sql.identifier(name));
  return sql`UPDATE ${webhookEvent} SET ${response} = NULL,
      ${payload} = json_set(json_remove(${payload}, '$.data.metadata', '$.data.name'), '$.data.userId', ${p.alias})
    WHERE ${isInChunk(p)} AND ${payload} ->> '$.data.userId' = ${p.userId}`;
});

/** One chunk of one erasure. Two round trips. @returns the alias if it was the erasure's last chunk @throws Unavailable */
export async function eraseEvents(db: Database, applicationId: ApplicationId, tables: Tables): Promise<string | null> {
  const [job] = tables.erasures(1);
  if (!job) return null;
  const { alias, userId, afterEvent: after, throughEvent } = job;
  const [end] = await db.run((d1) => SELECT_END.all(d1, { applicationId, after, through: throughEvent }));
  const through = end?.id ?? throughEvent;
  await db.run((d1) => ERASE.bind(d1, { applicationId, after, through, userId, alias }).run());
  const { orm: own } = tables;
  const isThis = eq(erasure.alias, alias);
  if (end)
    own
      .update(erasure)
      .set({ afterEvent: end.id })
      .where(and(isThis, eq(erasure.afterEvent, after)))
      .run();
  else own.delete(erasure).where(isThis).run();
  return end ? null : alias;
}
