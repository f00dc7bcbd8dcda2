import type { EventName } from "../../shared/events.ts";
import type { HistoryAction, StoredHistory } from "../../shared/history.ts";
import type { Position } from "./rows.ts";

export interface NewEvent {
  id: string;
  event: EventName;
  payload: string;
  createdAt: number;
}

export interface NewHistory extends StoredHistory {
  id: string;
  action: HistoryAction;
}

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

/** A user whose history and events get an alias, and the rows up to which that is done by this entry; null: all that are left. */
export interface Erasure {
  userId: string;
  alias: string;
  historyThrough: string | null;
  eventsAfter: string;
  eventsThrough: string | null;
}

/** The row of a signing key, which the entry with its first badge carries. */
interface KeyRow {
  id: number;
  kid: string;
  publicKey: string;
  sealed: string;
  sealingVersion: number;
  createdAt: number;
  signsFrom: number;
}

/** One step in the ordered list of changes of an application: what it stores in D1, as plain JSON. */
export interface StoredEntry {
  id: string;
  /** ID of the entry before: the batch applies only right after that one. */
  previous: string;
  position: Position;
  writes: RowWrite[];
  events: NewEvent[];
  /** Results of inbox commands: their IDs, and JSON. */
  results: { id: string; result: string }[];
  erasures: Erasure[];
  keys: KeyRow[];
  /** The end of the range, if this is the first entry since it grew. */
  lastNumber: number | null;
  /** What must be true in D1 for a group that was decided without reading: these devices have no badge, these users no block. */
  unless: { devices: string[]; users: string[] } | null;
  /** An administrator accepted a loss: freed numbers are forgotten, and pending invitations end. Milliseconds. */
  lossAcceptedAt: number | null;
}
