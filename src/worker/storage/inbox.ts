import * as z from "zod";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { type InboxRequest, type InboxResult, inboxRequest } from "../../shared/inbox.ts";
import { log } from "../log.ts";
import type { Database } from "./database.ts";

/** Commands of the administration script that wait for an application's object. */

export interface InboxItem extends InboxRequest {
  id: string;
}

const SELECT_OPEN = `
  SELECT id, command FROM inbox WHERE application_id = ?1 AND result IS NULL
  ORDER BY command ->> '$.command.kind' = 'reconcile' DESC, created_at LIMIT ?2`;

const openRow = z.object({ id: z.string(), command: z.string() });

/** The oldest commands of an application; before all others what ends a gap, for which they wait. One round trip. */
export async function readInbox(db: Database, id: ApplicationId, limit: number): Promise<InboxItem[]> {
  const items: InboxItem[] = [];
  for (const { id: itemId, command } of await db.primaryRows(openRow, SELECT_OPEN, [id, limit])) {
    const parsed = inboxRequest.safeParse(JSON.parse(command));
    if (parsed.success) {
      items.push({ id: itemId, ...parsed.data });
    } else {
      log("error", { event: "inbox-unreadable", application: id, command: itemId });
      await storeInboxResult(db, itemId, { kind: "failed" });
    }
  }
  return items;
}

/** Stores the result of a command that changes nothing else. */
export async function storeInboxResult(db: Database, itemId: string, result: InboxResult): Promise<void> {
  await db.change("UPDATE inbox SET result = ?2 WHERE id = ?1 AND result IS NULL", [itemId, JSON.stringify(result)]);
}

const DELETE_OLD = "DELETE FROM inbox WHERE id IN (SELECT id FROM inbox WHERE created_at < ?1 LIMIT ?2)";

/** Deletes old commands, carried out or not: nobody waits for them. @returns how many */
export function deleteOldCommands(db: Database, before: number, limit: number): Promise<number> {
  return db.change(DELETE_OLD, [before, limit]);
}

const applicationRow = z.object({ application_id: applicationId });

/**
 * Applications that have something in a partial index which begins with the application: one search for each application that is
 * in it, whatever it has there.
 */
const eachApplication = (table: string, condition: string, isDue: string): string => `
  WITH RECURSIVE each (id) AS (
    SELECT (SELECT application_id FROM ${table} WHERE ${condition} AND application_id > ?1 ORDER BY application_id LIMIT 1)
    UNION ALL
    SELECT (SELECT application_id FROM ${table} WHERE ${condition} AND application_id > each.id
      ORDER BY application_id LIMIT 1)
    FROM each WHERE each.id IS NOT NULL)
  SELECT id AS application_id FROM each WHERE id IS NOT NULL AND EXISTS (
    SELECT 1 FROM ${table} WHERE ${condition} AND application_id = each.id AND ${isDue})
  LIMIT ?2`;

const WITH_COMMANDS = eachApplication("inbox", "result IS NULL", "true");
const WITH_DUE = [
  eachApplication("badge", "expires_at IS NOT NULL AND ended_at IS NULL", "expires_at <= ?3"),
  eachApplication("invitation", "state = 'pending'", "expires_at_time <= ?3"),
];
const WITH_BLOCKS = eachApplication("blocked_user", "is_revoking = 1", "true");

/** A chunk of applications, by ID. `next`: after which the next chunk begins; the empty text: at the beginning. */
interface ApplicationChunk {
  applications: ApplicationId[];
  next: string;
}

function toChunk(lists: readonly unknown[][], limit: number): ApplicationChunk {
  const found = lists.map((rows) => rows.map((row) => applicationRow.parse(row).application_id));
  const ends = found.flatMap((ids) => (ids.length < limit ? [] : [ids.at(-1) ?? ""]));
  return { applications: [...new Set(found.flat())], next: ends.sort()[0] ?? "" };
}

/** Applications with open commands. One round trip. */
export async function findApplicationsWithCommands(
  db: Database,
  after: string,
  limit: number,
): Promise<ApplicationChunk> {
  return toChunk([await db.rows(z.unknown(), WITH_COMMANDS, [after, limit])], limit);
}

/** Applications with expiries that are not recorded, or blocks that are not finished. One round trip. @param now milliseconds */
export async function findDueApplications(
  db: Database,
  now: number,
  after: string,
  limit: number,
): Promise<ApplicationChunk> {
  const results = await db.run((d1) =>
    d1.batch([
      ...WITH_DUE.map((sql) => d1.prepare(sql).bind(after, limit, now)),
      d1.prepare(WITH_BLOCKS).bind(after, limit),
    ]),
  );
  return toChunk(
    results.map(({ results: rows }) => rows),
    limit,
  );
}

const UNFINISHED_BLOCKS = `
  SELECT user_id FROM blocked_user WHERE application_id = ?1 AND is_revoking = 1 LIMIT ?2`;

/** Users of an application whose block is not finished. One round trip. */
export async function findUnfinishedBlocks(db: Database, id: ApplicationId, limit: number): Promise<string[]> {
  const rows = await db.rows(z.object({ user_id: z.string() }), UNFINISHED_BLOCKS, [id, limit]);
  return rows.map((row) => row.user_id);
}

const EACH_APPLICATION = "SELECT id AS application_id FROM application WHERE id > ?1 ORDER BY id LIMIT ?2";

/** Applications of a home, by ID. One round trip. */
export async function listApplications(db: Database, after: string, limit: number): Promise<ApplicationId[]> {
  const rows = await db.rows(applicationRow, EACH_APPLICATION, [after, limit]);
  return rows.map((row) => row.application_id);
}
