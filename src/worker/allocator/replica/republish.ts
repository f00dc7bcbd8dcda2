import { type SQL, sql } from "drizzle-orm";
import { historyIdPrefix } from "../../../shared/history.ts";
import { type ApplicationId, newRandomId } from "../../../shared/identifiers.ts";
import { REPUBLISH_PAGE_ROWS, SEND_CHARACTERS, SEND_ENTRIES } from "../../../shared/limits/allocator-limits.ts";
import { history, statusList } from "../../../shared/schema.ts";
import { Unavailable } from "../../platform.ts";
import { statement } from "../../storage/statement.ts";
import { type Counters, countersOf, type Mark } from "../counters.ts";
import { type EntryChanges, NO_CHANGES, ROW_KEYS, type RowTable, type RowWrite, type Value } from "../log-entry.ts";
import { rowsAfter } from "../tables/bulk.ts";
import type { ReplicaParts } from "./copy.ts";
import { fence, readHead } from "./head.ts";
import { RenderedEntries } from "./render.ts";
import { PAGED_TABLES, pageStatement, readPage, TABLE_NAMES } from "./row-pages.ts";

/**
 * Replaces D1's rows of an application with the allocator's, page by page behind fences (contract section 21). Device calls, the
 * feed, status lists, doors and due webhooks wait until it is done; other lists show what D1 has by then. If interrupted, it must
 * start over: D1's head is then unknown to the log.
 *
 * @throws Unavailable
 */
export async function republish(parts: ReplicaParts): Promise<void> {
  const { db, applicationId, tables, log, now } = parts;
  const from = await readHead(db, applicationId);
  const newest = log.head();
  if (!from || !newest) throw new Unavailable("D1", new Error("D1 does not know the application"));
  const found = highest(newest.counters, countersOf(from));
  // No badge has that change number, so no connected door is up to date (src/worker/live/snapshots.ts).
  const counters = { ...found, epoch: newRandomId(), lastChange: found.lastChange + 1 };
  // A write, which fails in a superseded instance.
  tables.touch();
  const mover = new Mover(parts, { from, sequence: newest.sequence, counters });
  const last = counters.rangeSegments.at(-1);
  await mover.move((session) => [
    DELETE_STATUS_LISTS.bind(session, { applicationId }),
    // D1's range must cover every number that was drawn, and it must have the key of every badge.
    ...render(parts, session, {
      ...NO_CHANGES,
      keys: tables.usedKeys(),
      lastNumber: last ? last.first + last.size - 1 : null,
    }),
  ]);
  for (const table of TABLE_NAMES) await deleteRows(parts, mover, table);
  counters.statistics.freed = tables.countFreedNumbers();
  for (const table of TABLE_NAMES) await insertRows(parts, mover, table);
  await sendEventsAgain(parts, mover, log.has(from) ? from.sequence : 0);
  const end = { sequence: newest.sequence + 1, entry: newRandomId() };
  // Before it is sent: then D1's head is known, whatever happens to the response.
  log.append({ sequence: end.sequence, id: end.entry, counters, changes: NO_CHANGES, calls: [], keptAt: now() });
  await mover.finish(end);
}

/** Moves D1's head from one step to the next; each step is one batch. */
class Mover {
  readonly counters: Counters;
  readonly #parts: ReplicaParts;
  readonly #sequence: number;
  #at: string;

  constructor(parts: ReplicaParts, start: { from: Mark; sequence: number; counters: Counters }) {
    this.#parts = parts;
    this.#at = start.from.entry;
    this.#sequence = start.sequence;
    this.counters = start.counters;
  }

  /** @throws Unavailable also when D1's head is no longer where this left it */
  async move(statements: (session: D1DatabaseSession) => D1PreparedStatement[]): Promise<void> {
    const to = { sequence: this.#sequence, entry: newRandomId(), counters: this.counters };
    await this.#send({ ...to, readableFrom: { keep: false, sequence: Number.MAX_SAFE_INTEGER } }, statements);
  }

  /** The last step: readers may read again. */
  async finish(to: Mark): Promise<void> {
    await this.#send({ ...to, counters: this.counters, readableFrom: { keep: false, sequence: 0 } }, () => []);
  }

  async #send(
    to: Parameters<typeof fence>[3],
    statements: (session: D1DatabaseSession) => D1PreparedStatement[],
  ): Promise<void> {
    const { db, applicationId } = this.#parts;
    try {
      await db.onceAtPrimary((session) =>
        session.batch([fence(session, applicationId, this.#at, to), ...statements(session)]),
      );
    } catch (error) {
      // The response may be all that was lost.
      if ((await readHead(db, applicationId))?.entry !== to.entry) throw error;
    }
    this.#at = to.entry;
  }
}

/** Both sides' counters, the higher of each: no number, place or change number is used twice. */
export function highest(own: Counters, other: Counters): Counters {
  const rangeSegments = own.rangeSegments.map((segment) => {
    const same = other.rangeSegments.find(({ first }) => first === segment.first);
    if (!same) return segment;
    const size = Math.max(segment.size, same.size);
    // Another size gives another order of the numbers, so none of them is known to be free.
    return { ...segment, size, used: segment.size === same.size ? Math.max(segment.used, same.used) : size };
  });
  const added = other.rangeSegments.filter(
    ({ first }) => !own.rangeSegments.some((segment) => segment.first === first),
  );
  return {
    ...own,
    rangeSegments: [...rangeSegments, ...added].sort((one, next) => one.first - next.first),
    lastOrdinal: Math.max(own.lastOrdinal, other.lastOrdinal),
    lastChange: Math.max(own.lastChange, other.lastChange),
  };
}

const DELETE_STATUS_LISTS = statement<{ applicationId: ApplicationId }, SQL>(
  (p) => sql`DELETE FROM ${statusList} WHERE ${statusList.applicationId} = ${p.applicationId}`,
);

/** Deletes D1's rows. A number that D1 alone has as an issued badge is somebody's: it is never drawn. */
async function deleteRows(parts: ReplicaParts, mover: Mover, table: RowTable): Promise<void> {
  const { db, applicationId, tables } = parts;
  const { counters } = mover;
  const limit = REPUBLISH_PAGE_ROWS;
  for (;;) {
    const { start } = PAGED_TABLES[table];
    const result = await db.atPrimary((session) =>
      pageStatement(session, table, { applicationId, counters, after: start, limit }).all(),
    );
    const { rows } = readPage(table, result, limit);
    if (rows.length === 0) return;
    const keys = keysOf(table, rows);
    const write: RowWrite = { op: "delete", table, columns: [ROW_KEYS[table]], rows: keys.map((key) => [key]) };
    // First: if this is interrupted, D1 still has the badge, or nobody draws the number.
    if (table === "badge")
      tables.deleteFreedNumbers(
        keysOf(
          table,
          rows.filter(({ ordinal }) => ordinal !== null),
        ),
      );
    await mover.move((session) => render(parts, session, { ...NO_CHANGES, rows: [write] }));
  }
}

const keysOf = (table: RowTable, rows: readonly Record<string, unknown>[]): (string | number)[] =>
  rows.map((row) => row[ROW_KEYS[table]]).filter((key) => typeof key === "string" || typeof key === "number");

async function insertRows(parts: ReplicaParts, mover: Mover, table: RowTable): Promise<void> {
  const { tables } = parts;
  for (let after: string | number | null = null; ; ) {
    const rows = rowsAfter(tables.orm, table, after, REPUBLISH_PAGE_ROWS);
    const last = rows.at(-1)?.[ROW_KEYS[table]];
    if (typeof last !== "string" && typeof last !== "number") return;
    const columns = Object.keys(rows[0] ?? {});
    const key = ROW_KEYS[table];
    const names = [key, ...columns.filter((name) => name !== key)];
    const values = rows.map((row) => names.map((name): Value => toValue(row[name])));
    await mover.move((session) =>
      render(parts, session, { ...NO_CHANGES, rows: [{ op: "insert", table, columns: names, rows: values }] }),
    );
    after = last;
  }
}

const toValue = (value: unknown): Value =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : null;

/** History of settings and secrets, which the log does not have, names neither a badge nor a user. */
const DELETE_NEWER_HISTORY = statement<{ applicationId: ApplicationId; from: string }, SQL>(
  (p) => sql`DELETE FROM ${history} WHERE ${history.applicationId} = ${p.applicationId} AND ${history.id} >= ${p.from}
    AND (${history.badge} IS NOT NULL OR ${history.userId} IS NOT NULL)`,
);

/**
 * Events and history of the log are sent again. D1's older ones stay, and those between a backup and the log's beginning are lost.
 * History is sent in its order, because an erasure concerns what was there before it: a person may have come back since.
 *
 * @param known sequence of the last entry that D1 certainly had. Events up to it were recorded by the settings of their time
 */
async function sendEventsAgain(parts: ReplicaParts, mover: Mover, known: number): Promise<void> {
  const { applicationId, log } = parts;
  const from = historyIdPrefix(log.oldestKeptAt() ?? parts.now());
  const through = log.head()?.sequence ?? 0;
  await mover.move((session) => [DELETE_NEWER_HISTORY.bind(session, { applicationId, from })]);
  const batch: EntryChanges[] = [];
  const send = async () => {
    const sent = batch.splice(0);
    if (sent.length > 0) await mover.move((session) => render(parts, session, ...sent));
    for (const { erasures } of sent) for (const erasure of erasures) parts.tables.addErasure(erasure);
  };
  for (const { sequence, changes } of log.walk(through)) {
    const { history: rows, erasures, eventSearches, results, endedDay } = changes;
    const events = sequence > known ? changes.events : [];
    const sent = { history: rows, events, erasures, eventSearches, results };
    const isEmpty = Object.values(sent).every((list) => list.length === 0) && endedDay === null;
    if (!isEmpty) batch.push({ ...NO_CHANGES, ...sent, endedDay });
    if (batch.length >= SEND_ENTRIES || JSON.stringify(batch).length > SEND_CHARACTERS) await send();
  }
  await send();
}

function render(
  { applicationId, now, tables }: ReplicaParts,
  session: D1DatabaseSession,
  ...entries: EntryChanges[]
): D1PreparedStatement[] {
  const resend = { now: now(), hadUrl: tables.self()?.hasRecordedEvents ?? false };
  const resent = entries.map((changes) => ({ changes, isResent: true }));
  return new RenderedEntries(session, applicationId, resent, resend).statements;
}
