import { userInfo } from "node:os";
import { type SQL, sql } from "drizzle-orm";
import type { Actor } from "../../shared/actor.ts";
import { type HistoryAction, historyId } from "../../shared/history.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { history } from "../../shared/schema.ts";
import { type Database, insertWhere, type Orm } from "../platform/database.ts";

/** A row of history for a change that the script makes by itself (contract section 23). */
type Note = Awaited<ReturnType<typeof newHistoryRow>>;

/** By D1's clock. @param detail names and IDs, nothing secret */
export async function newHistoryRow(
  database: Database,
  applicationId: ApplicationId,
  actor: Actor,
  { action, detail }: { action: HistoryAction; detail?: Record<string, unknown> },
) {
  const at = await database.readClock();
  return { applicationId, id: historyId(at), at, action, actor, detail: detail ? JSON.stringify(detail) : null };
}

/**
 * Inserts the row in the change's own transaction: before the change if what is to change tells whether it happens, behind it
 * if what it has made does. A repeat after a lost response inserts no second one.
 *
 * @param condition whether the change happens
 */
export function insertHistoryRow(orm: Orm, { applicationId, id, at, action, actor, detail }: Note, condition: SQL) {
  const row = { applicationId, id, at, action, actorKind: actor.kind, actorName: actor.name ?? null, detail };
  return insertWhere(orm, history, row, sql`WHERE ${condition}`).onConflictDoNothing();
}

/** Who gives a command of the script (contract section 23). @param name the terminal's user unless it is given */
export const administrator = (name: string = terminalUser()): Actor => ({ kind: "administrator", name });

function terminalUser(): string {
  try {
    return userInfo().username;
  } catch {
    // A process in a container may have a user that the system does not know.
    return process.env.USER ?? "unknown";
  }
}
