import { and, eq, type SQL, sql } from "drizzle-orm";
import { webhookEvent } from "../../shared/schema.ts";
import type { Orm } from "../platform/database.ts";

/** `due_at` of what is due at once: the sweep sends such events oldest first. */
export const DUE_AT_ONCE = 0;
/** `due_at` of what goes before all other events of its application, because somebody waits for it. */
export const DUE_FIRST = -1;

/**
 * Makes all stopped events of an application due; the sweep sends them oldest first. The state stands in the text of the
 * statement, not beside it, so that the index of stopped events serves it.
 *
 * @param condition what must hold besides
 */
export function makeDue(orm: Orm, applicationId: string, state: "held" | "exhausted", condition: SQL) {
  const isStopped = sql`${webhookEvent.state} = ${sql.raw(`'${state}'`)}`;
  return orm
    .update(webhookEvent)
    .set({ state: "pending", attempts: 0, dueAt: DUE_AT_ONCE })
    .where(and(eq(webhookEvent.applicationId, applicationId), isStopped, condition));
}
