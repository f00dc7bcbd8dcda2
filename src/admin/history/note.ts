import { userInfo } from "node:os";
import { type SQL, sql } from "drizzle-orm";
import type { Actor } from "../../shared/actor.ts";
import { type HistoryAction, historyId } from "../../shared/history.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { history } from "../../shared/schema.ts";
import { type Database, insertWhere, type Orm } from "../platform/database.ts";

/** A row of history for a change that the script makes by itself (contract section 23). */
type HistoryRow = Awaited<ReturnType<typeof newHistoryRow>>;

/** Its time is D1's. @param detail names and IDs, nothing secret */
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
 * Inserts the row in the change's own transaction: before the change if `condition` reads what it will change, after it if
 * `condition` reads what it has made. A repeat after a lost response inserts no second row.
 *
 * @param condition whether the change happens
 */
export function insertHistoryRow(
  orm: Orm,
  { applicationId, id, at, action, actor, detail }: HistoryRow,
  condition: SQL,
) {
  const row = { applicationId, id, at, action, actorKind: actor.kind, actorName: actor.name ?? null, detail };
  return insertWhere(orm, history, row, sql`WHERE ${condition}`).onConflictDoNothing();
}

/** @param name default: the terminal's user */
export const administrator = (name: string = terminalUser()): Actor => ({ kind: "administrator", name });

function terminalUser(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container, the process's user may have no name.
    return process.env.USER ?? "unknown";
  }
}
