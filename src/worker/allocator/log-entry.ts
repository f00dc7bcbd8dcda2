import type { EventName } from "../../shared/events.ts";
import type { DayCount } from "../../shared/head-statistics.ts";
import type { HistoryAction, StoredHistory } from "../../shared/history.ts";
import type { signingKey } from "../../shared/schema.ts";
import type { BadgeRow, BlockRow, FreedRow, InvitationRow } from "../storage/rows.ts";

/** Tables whose rows the allocator owns, and the column that is the key, by the names of src/shared/schema.ts. */
export const ROW_KEYS = {
  badge: "number",
  invitation: "digest",
  blockedUser: "userId",
  freedNumber: "number",
} as const satisfies {
  badge: keyof BadgeRow;
  invitation: keyof InvitationRow;
  blockedUser: keyof BlockRow;
  freedNumber: keyof FreedRow;
};

export type RowTable = keyof typeof ROW_KEYS;

/** A value of a column; that of JSON text is stored as what the text says. */
export type Value = string | number | boolean | null | object;

/** Rows of one table that have the same columns; the first column is the key. */
export interface RowWrite {
  op: "insert" | "update" | "delete";
  table: RowTable;
  columns: string[];
  rows: Value[][];
}

/** A webhook event. */
export interface NewEvent {
  /** Its body, which D1 keeps as text. */
  payload: EventPayload;
  /** Milliseconds. */
  createdAt: number;
}

export interface EventPayload {
  id: string;
  event: EventName;
  createdAt: string;
  /** What it says about a badge, whose number is the ID. Not recorded if the number is another application's in D1. */
  data: { id: string; [field: string]: unknown };
}

export interface NewHistory extends StoredHistory {
  id: string;
  action: HistoryAction;
}

/** A user to replace with an alias in all of D1's history and events from before the erasure. */
export interface Erasure {
  userId: string;
  alias: string;
  throughEvent: string;
  /**
   * True if the entry only records that the search is done. If D1 is restored to a moment before this entry, it is
   * searched again.
   */
  isDone?: true;
}

/** The events after `after`, up to `through`, in which D1 replaces an erased user. */
export interface SearchRange {
  after: string;
  through: string;
  userId: string;
  alias: string;
}

/** A row of D1's history with an alias in place of a user. */
export type ErasedHistory = Pick<NewHistory, "id" | "actorName" | "reason">;

/** A signing key, sealed as D1 has it. */
export type EntryKey = Omit<typeof signingKey.$inferSelect, "applicationId">;

/**
 * What one entry of the log stores in D1. This is a stored format, which a later release reads up to 31 days later: `version` names it.
 * Row changes are net: a row that a group inserts and deletes again is not in them.
 */
export interface EntryChanges {
  version: 1;
  rows: RowWrite[];
  history: NewHistory[];
  events: NewEvent[];
  erasures: Erasure[];
  eventSearches: SearchRange[];
  erasedHistory: ErasedHistory[];
  /** Results of the script's commands: their IDs, and JSON. */
  results: { id: string; result: string }[];
  /** Signing keys that badges were issued with for the first time: a restored D1 may lack them. */
  keys: EntryKey[];
  /** The end of the range, if this is the first entry since it grew; else null. */
  lastNumber: number | null;
  /** The last day before this entry's that had new badges; null: this entry begins no new day. */
  endedDay: DayCount | null;
  /** Numbers that D1 refused and the allocator has withdrawn. */
  withdrawn: number[];
}

/** As the log stores them: without what the entry does not change. */
export type StoredChanges = Pick<EntryChanges, "version"> & Partial<EntryChanges>;

export function toStored({ version, ...changes }: EntryChanges): StoredChanges {
  const isSet = ([, value]: [string, unknown]) => (Array.isArray(value) ? value.length > 0 : value !== null);
  return { version, ...Object.fromEntries(Object.entries(changes).filter(isSet)) };
}

/**
 * What a stored entry says, in this release's form: an earlier version is translated here.
 *
 * @throws Error for a version of a later release, which this older release cannot translate
 */
export function fromStored(stored: StoredChanges): EntryChanges {
  const { version }: { version: number } = stored;
  if (version !== NO_CHANGES.version) throw new Error(`the entry has version ${version}, which a later release wrote`);
  return { ...NO_CHANGES, ...stored };
}

export const NO_CHANGES: EntryChanges = {
  version: 1,
  rows: [],
  history: [],
  events: [],
  erasures: [],
  eventSearches: [],
  erasedHistory: [],
  results: [],
  keys: [],
  lastNumber: null,
  endedDay: null,
  withdrawn: [],
};
