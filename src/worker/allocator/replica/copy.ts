import { type ApplicationId, newRandomId } from "../../../shared/identifiers.ts";
import { COPY_PAGE_ROWS } from "../../../shared/limits/allocator-limits.ts";
import type { Database } from "../../storage/database.ts";
import { countersOf } from "../counters.ts";
import type { RowTable } from "../entry.ts";
import { clearRows, insertRows } from "../tables/bulk.ts";
import type { Log, LogHead } from "../tables/entry-log.ts";
import type { Tables } from "../tables/tables.ts";
import { type DatabaseHead, fence, readHead, SELECT_HEAD } from "./head.ts";
import { PAGED_TABLES, type PageKey, pageStatement, readPage, TABLE_NAMES } from "./row-pages.ts";

export interface CopyParts {
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
export async function copyStep(parts: CopyParts): Promise<CopyStep> {
  const { db, applicationId, tables, log } = parts;
  if (!tables.self()) tables.insertSelf(applicationId);
  const begun = log.head();
  if (begun) return continueCopy(parts, begun);
  const from = await readHead(db, applicationId);
  if (!from) return "unknown";
  return begin(parts, from);
}

async function begin({ db, applicationId, tables, log, now }: CopyParts, from: DatabaseHead): Promise<CopyStep> {
  // Unless no number was ever drawn, followers of the feed begin again.
  const isNew = from.lastChange === 0 && from.rangeSegments.every(({ used }) => used === 0);
  const renewed = { epoch: newRandomId(), lastChange: from.lastChange + 1 };
  // The next badge brings its signing key again, which the allocator does not have yet.
  const counters = { ...countersOf(from), ...(isNew ? {} : renewed), lastSigningKey: 0 };
  const to: LogHead = { sequence: from.sequence + 1, entry: newRandomId(), counters };
  // A write before each fence: after a restore, a superseded instance's fence could succeed.
  tables.touch();
  const results = await db.onceAtPrimary((session) =>
    session.batch([
      fence(session, applicationId, from.entry, { ...to, readableFrom: { keep: false, sequence: 0 } }),
      ...TABLE_NAMES.map((table) => {
        const { start } = PAGED_TABLES[table];
        return pageStatement(session, table, { applicationId, counters, after: start, limit: COPY_PAGE_ROWS });
      }),
    ]),
  );
  const pages = TABLE_NAMES.map((table, index) => readPage(table, results[index + 1], COPY_PAGE_ROWS));
  const isDone = pages.every(({ next }) => next === null);
  tables.orm.transaction(() => {
    clearRows(tables.orm);
    log.begin([{ sequence: from.sequence, entry: from.entry, counters: countersOf(from) }, to], now());
    for (const [index, table] of TABLE_NAMES.entries()) {
      if (isDone) insertRows(tables.orm, table, pages[index]?.rows ?? []);
    }
    tables.changeSelf(isDone ? { copiedAt: isNew ? 0 : now(), copyAfter: null } : { copiedAt: null, copyAfter: null });
  });
  return isDone ? "done" : "more";
}

async function continueCopy({ db, applicationId, tables, log, now }: CopyParts, begun: LogHead): Promise<CopyStep> {
  const { table, after } = placeOf(tables);
  const { counters } = begun;
  const [headRows, page] = await db.onceAtPrimary((session) =>
    session.batch([
      SELECT_HEAD.bind(session, { applicationId }),
      pageStatement(session, table, { applicationId, counters, after, limit: COPY_PAGE_ROWS }),
    ]),
  );
  const [head] = SELECT_HEAD.rows(headRows);
  // Somebody else has moved it: D1 was restored, or another instance began anew.
  if (head?.entry !== begun.entry) {
    log.clear();
    return "more";
  }
  const { rows, next } = readPage(table, page, COPY_PAGE_ROWS);
  const nextTable = TABLE_NAMES[TABLE_NAMES.indexOf(table) + 1];
  const isDone = next === null && nextTable === undefined;
  tables.orm.transaction(() => {
    insertRows(tables.orm, table, rows);
    const place = next
      ? { table, key: [...next] }
      : nextTable && { table: nextTable, key: [...PAGED_TABLES[nextTable].start] };
    tables.changeSelf(isDone ? { copiedAt: now(), copyAfter: null } : { copyAfter: place ?? null });
  });
  return isDone ? "done" : "more";
}

function placeOf(tables: Tables): { table: RowTable; after: PageKey } {
  const noted = tables.self()?.copyAfter;
  const table = TABLE_NAMES.find((name) => name === noted?.table);
  return table && noted ? { table, after: noted.key } : { table: "badge", after: PAGED_TABLES.badge.start };
}
