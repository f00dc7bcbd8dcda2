import { and, eq, type SQL, sql } from "drizzle-orm";
import { webhookEvent } from "../../storage/schema.ts";
import type { Orm } from "../platform/database.ts";

/**
 * Makes all stopped events of an application due, the oldest first: the sweep sends in the order of `due_at`. The state
 * stands in the text of the statement, not beside it, so that the index of stopped events serves it.
 *
 * @param condition what must hold besides
 */
export function makeDue(orm: Orm, applicationId: string, state: "held" | "exhausted", condition: SQL) {
  const isStopped = and(
    eq(webhookEvent.applicationId, applicationId),
    sql`${webhookEvent.state} = ${sql.raw(`'${state}'`)}`,
  );
  const queue = orm
    .select({
      id: sql<string>`${webhookEvent.id}`.as("queued_id"),
      place: sql<number>`row_number() OVER (ORDER BY ${webhookEvent.id} DESC)`.as("place"),
    })
    .from(webhookEvent)
    .where(isStopped)
    .as("queue");
  return orm
    .update(webhookEvent)
    .set({ state: "pending", attempts: 0, dueAt: sql`${Date.now()} - ${queue.place}` })
    .from(queue)
    .where(and(isStopped, eq(webhookEvent.id, queue.id), condition));
}
