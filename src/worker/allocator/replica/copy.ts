import { eq, getTableColumns, sql } from "drizzle-orm";
import { type ApplicationId, newRandomId } from "../../../shared/identifiers.ts";
import { COPY_PAGE_ROWS } from "../../../shared/limits/allocator-limits.ts";
import { signingKey } from "../../../shared/schema.ts";
import type { Database } from "../../storage/database.ts";
import { orm, statement } from "../../storage/statement.ts";
import { countersOf } from "../counters.ts";
import type { RowTable } from "../log-entry.ts";
import { clearRows, insertRows } from "../tables/bulk.ts";
import type { Log, LogHead } from "../tables/entry-log.ts";
import type { Tables } from "../tables/tables.ts";
import { fence, readHead, SELECT_HEAD } from "./head.ts";
import { PAGED_TABLES, type PageKey, pageStatement, readPage, TABLE_NAMES } from "./row-pages.ts";

export interface ReplicaParts {
  db: Database;
  applicationId: ApplicationId;
  tables: Tables;
  log: Log;
  now(): number;
}

/** `unknown`: D1 does not know the application. */
export type CopyStep = "done" | "more" | "unknown";

/**
 * One step of the copy of D1's rows into an allocator that has none: it is new, or its storage was lost (contract section 21). The
 * first step moves D1's head to an empty entry, so that no batch of an earlier instance comes in any more. The allocator counts as
 * empty until the last page is in; the steps go on where an earlier instance left them. A step that fails is repeated by the engine.
 *
 * @throws Unavailable
 */
export async function copyStep(parts: ReplicaParts): Promise<CopyStep> {
  const { db, applicationId, tables, log, now } = parts;
  if (!tables.self()) tables.insertSelf(applicationId);
  const begun = log.head();
  if (begun) return continueCopy(parts, begun);
  const head = await readHead(db, applicationId);
  if (!head) return "unknown";
  const from: LogHead = { sequence: head.sequence, entry: head.entry, counters: countersOf(head) };
  // If any number was ever drawn, the feed's cursors expire. With `lastSigningKey` 0, the next badge's entry has its
  // signing key again.
  const renewed = isUnused(from) ? {} : { epoch: newRandomId(), lastChange: from.counters.lastChange + 1 };
  const counters = { ...from.counters, ...renewed, lastSigningKey: 0 };
  const to: LogHead = { sequence: from.sequence + 1, entry: newRandomId(), counters };
  // Logged before the batch, so that the log has D1's head whether or not the batch arrives, and after a restore.
  tables.orm.transaction(() => {
    clearRows(tables.orm);
    log.begin([from, to], now());
    tables.changeSelf({ copiedAt: null, copyAfter: null });
  });
  return moveHead(parts, from.entry, to);
}

const isUnused = ({ counters: { lastChange, rangeSegments } }: LogHead): boolean =>
  lastChange === 0 && rangeSegments.length === 0;

/** 0 for an unused application, for which no call can have been decided before. */
const copiedAt = (head: LogHead, now: number): number => (isUnused(head) ? 0 : now);

async function moveHead(
  { db, applicationId, tables, now }: ReplicaParts,
  from: string,
  to: LogHead,
): Promise<CopyStep> {
  const { counters } = to;
  // A write before each fence: after a restore, a superseded instance's fence could succeed.
  tables.touch();
  const results = await db.onceAtPrimary((session) =>
    session.batch([
      fence(session, applicationId, from, { ...to, readableFrom: { keep: false, sequence: 0 } }),
      SELECT_KEYS.bind(session, { applicationId }),
      ...TABLE_NAMES.map((table) => {
        const { start } = PAGED_TABLES[table];
        return pageStatement(session, table, { applicationId, counters, after: start, limit: COPY_PAGE_ROWS });
      }),
    ]),
  );
  const pages = TABLE_NAMES.map((table, index) => readPage(table, results[index + 2], COPY_PAGE_ROWS));
  const isDone = pages.every(({ next }) => next === null);
  tables.orm.transaction(() => {
    for (const key of SELECT_KEYS.rows(results[1])) tables.keepKey(key);
    for (const [index, table] of TABLE_NAMES.entries()) {
      if (isDone) insertRows(tables.orm, table, pages[index]?.rows ?? []);
    }
    tables.changeSelf({ copiedAt: isDone ? copiedAt(to, now()) : null, copyAfter: null });
  });
  return isDone ? "done" : "more";
}

const { applicationId: _, ...keyColumns } = getTableColumns(signingKey);

const selectKeys = orm
  .select(keyColumns)
  .from(signingKey)
  .where(eq(signingKey.applicationId, sql.placeholder("applicationId")));

const SELECT_KEYS = statement<{ applicationId: ApplicationId }, typeof selectKeys>(() => selectKeys);

async function continueCopy(parts: ReplicaParts, begun: LogHead): Promise<CopyStep> {
  const { db, applicationId, tables, log, now } = parts;
  const { table, after } = placeOf(tables);
  const { counters } = begun;
  const [headRows, keys, page] = await db.onceAtPrimary((session) =>
    session.batch([
      SELECT_HEAD.bind(session, { applicationId }),
      SELECT_KEYS.bind(session, { applicationId }),
      pageStatement(session, table, { applicationId, counters, after, limit: COPY_PAGE_ROWS }),
    ]),
  );
  const [head] = SELECT_HEAD.rows(headRows);
  if (head?.entry !== begun.entry) {
    // The batch was lost, or D1 was restored to the moment before.
    if (head && log.has(head)) return moveHead(parts, head.entry, begun);
    // Somebody else has moved it: D1 was restored, or another instance began anew.
    log.clear();
    return "more";
  }
  const { rows, next } = readPage(table, page, COPY_PAGE_ROWS);
  const nextTable = TABLE_NAMES[TABLE_NAMES.indexOf(table) + 1];
  const isDone = next === null && nextTable === undefined;
  tables.orm.transaction(() => {
    // The first step's response, which has them too, may be lost.
    for (const key of SELECT_KEYS.rows(keys)) tables.keepKey(key);
    insertRows(tables.orm, table, rows);
    const place = next ? { table, key: next } : nextTable && { table: nextTable, key: PAGED_TABLES[nextTable].start };
    tables.changeSelf(isDone ? { copiedAt: copiedAt(begun, now()), copyAfter: null } : { copyAfter: place ?? null });
  });
  return isDone ? "done" : "more";
}

function placeOf(tables: Tables): { table: RowTable; after: PageKey } {
  const noted = tables.self()?.copyAfter;
  const table = TABLE_NAMES.find((name) => name === noted?.table);
  return table && noted ? { table, after: noted.key } : { table: "badge", after: PAGED_TABLES.badge.start };
}
