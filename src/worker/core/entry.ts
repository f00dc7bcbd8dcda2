import { newRandomId } from "../../shared/identifiers.ts";
import type { Outcome } from "./commands.ts";
import type { Draft, NewEvent } from "./decide/draft.ts";
import type { RowChanges } from "./decide/row-set.ts";
import type { Position } from "./decide/rows.ts";

/** Tables whose rows an entry stores, by the names of src/shared/schema.ts. */
export type EntryTable = "badge" | "invitation" | "blockedUser" | "freedNumber" | "history";

/**
 * Rows of one table that are stored by their keys: the first column is the key. An insert fails if the key is taken; an update or
 * a deletion of a row that is not there changes nothing.
 */
export interface RowWrite {
  op: "insert" | "update" | "delete";
  table: EntryTable;
  columns: string[];
  rows: unknown[][];
}

/** A user whose history and events get an alias, and the events up to which that is done by this entry. */
export interface Erasure {
  userId: string;
  alias: string;
  eventsAfter: string;
  eventsThrough: string | null;
}

/** The key row that the first badge of a signing key carries. */
export interface KeyRow {
  id: number;
  kid: string;
  publicKey: string;
  sealed: string;
  sealingVersion: number;
  createdAt: number;
  signsFrom: number;
}

/**
 * One step in the ordered list of changes of an application: what a group of commands stores in D1, as plain JSON. The object
 * keeps it for 31 days and applies it again if D1 forgets it, so this is a stored format: `version` names it.
 */
export interface Entry {
  version: 1;
  id: string;
  /** ID of the entry before: the batch applies only right after that one. */
  previous: string;
  position: Position;
  writes: RowWrite[];
  events: NewEvent[];
  /** What each call was answered, by the call's ID: a call that is repeated gets the same. */
  calls: { id: string; outcome: Outcome }[];
  /** Results of inbox commands: their IDs, and JSON. */
  results: { id: string; result: string }[];
  erasures: Erasure[];
  key: KeyRow | null;
  /** The end of the range, if this is the first entry since it grew. */
  lastNumber: number | null;
  /** What must be true in D1 for a group that was decided without reading: these devices have no badge, these users no block. */
  unless: { devices: string[]; users: string[] } | null;
  /** An administrator accepted a loss: freed numbers are forgotten, and pending invitations end. Milliseconds. */
  lossAcceptedAt: number | null;
}

/** @returns the entry that follows `before` and stores what was decided */
export function toEntry(
  before: Position,
  draft: Draft,
  { calls, results, erasures }: Pick<Entry, "calls" | "results" | "erasures">,
): Entry {
  const id = newRandomId();
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
    key: draft.signingKey,
    lastNumber: hasGrown ? last.first + last.size - 1 : null,
    unless: null,
    lossAcceptedAt: null,
  };
}

/** Whether it stores nothing. */
export const isEmpty = ({ writes, events, results, erasures }: Entry): boolean =>
  writes.length + events.length + results.length + erasures.length === 0;

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
