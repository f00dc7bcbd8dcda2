import { newEntryId } from "../../shared/identifiers.ts";
import type { EntryTable, RowWrite, StoredEntry } from "../storage/entry.ts";
import type { Position } from "../storage/rows.ts";
import type { Outcome } from "./commands.ts";
import type { Draft } from "./decide/draft.ts";
import type { RowChanges } from "./decide/row-set.ts";

/**
 * What a group of calls has decided. The object keeps it for 31 days and applies it again if D1 forgets it, so this is a stored
 * format: `version` names it.
 */
export interface Entry extends StoredEntry {
  version: 1;
  /** What each call was answered, by the call's ID: a call that is repeated gets the same. */
  calls: { id: string; outcome: Outcome }[];
}

/** @returns the entry that follows `before` and stores what was decided */
export function toEntry(
  before: Position,
  draft: Draft,
  { calls, results, erasures, unless }: Pick<Entry, "calls" | "results" | "erasures" | "unless">,
): Entry {
  const id = newEntryId(draft.now);
  const { fresh } = draft.position;
  const last = fresh.at(-1);
  const hasGrown = last !== undefined && fresh.length > before.fresh.length;
  return {
    version: 1,
    id,
    previous: before.entry,
    position: { ...draft.position, sequence: before.sequence + 1, entry: id },
    writes: writesOf(draft),
    events: draft.events,
    calls,
    results,
    erasures,
    keys: [...draft.signingKeys.values()],
    lastNumber: hasGrown ? last.first + last.size - 1 : null,
    unless,
    lossAcceptedAt: null,
  };
}

/** Whether it stores nothing. Numbers beyond the range that were skipped are to be stored. */
export const isEmpty = ({ writes, events, results, erasures, position }: Entry, before: Position): boolean =>
  writes.length + events.length + results.length + erasures.length === 0 &&
  JSON.stringify(position.fresh) === JSON.stringify(before.fresh);

/** Rows that give up a unique place come before rows that take it. */
function writesOf(draft: Draft): RowWrite[] {
  const badges = draft.badges.changes();
  const retired = badges.updated.filter(({ columns }) => columns.retiredAt != null);
  const others = badges.updated.filter(({ columns }) => columns.retiredAt == null);
  return [
    ...writes("badge", "number", { inserted: [], updated: retired, deleted: badges.deleted }),
    ...writes("badge", "number", { inserted: badges.inserted, updated: others, deleted: [] }),
    ...writes("invitation", "digest", draft.invitations.changes()),
    ...writes("blockedUser", "userId", draft.blocks.changes()),
    ...writes("freedNumber", "number", draft.freed.changes()),
    ...inserts("history", "id", draft.history),
  ];
}

function writes<Key extends string | number, Row extends object>(
  table: EntryTable,
  key: keyof Row & string,
  { inserted, updated, deleted }: RowChanges<Key, Row>,
): RowWrite[] {
  // Rows with the same changed columns share a statement.
  const byColumns = Map.groupBy(updated, ({ columns }) => Object.keys(columns).join(","));
  return [
    ...(deleted.length > 0
      ? [{ op: "delete" as const, table, columns: [key], rows: deleted.map((one) => [one]) }]
      : []),
    ...[...byColumns].map(([names, rows]) => ({
      op: "update" as const,
      table,
      columns: [key, ...names.split(",")],
      rows: rows.map(({ key: one, columns }) => [one, ...Object.values(columns)]),
    })),
    ...inserts(table, key, inserted),
  ];
}

/** Columns that are null in all of the rows are left out. */
function inserts<Row extends object>(table: EntryTable, key: keyof Row & string, rows: readonly Row[]): RowWrite[] {
  const [first] = rows;
  if (!first) return [];
  const names = Object.keys(first).filter((name) => rows.some((row) => Reflect.get(row, name) !== null));
  const columns = [key, ...names.filter((name) => name !== key)];
  return [{ op: "insert", table, columns, rows: rows.map((row) => columns.map((name) => Reflect.get(row, name))) }];
}
