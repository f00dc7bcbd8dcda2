import type { BadgeRow } from "../storage/rows.ts";
import { ROW_KEYS, type RowTable, type RowWrite, type Value } from "./log-entry.ts";

/** Columns of a row, by their names in src/shared/schema.ts. */
export type Columns = Record<string, Value>;

interface NetChange {
  op: "insert" | "update" | "delete";
  table: RowTable;
  key: string | number;
  columns: Columns;
}

/** The net change of each row that a group inserts, changes or deletes. A row that is inserted and deleted again is left out. */
export class NetChanges {
  readonly #changes = new Map<string, NetChange>();

  get isEmpty(): boolean {
    return this.#changes.size === 0;
  }

  /** @returns its approximate length in characters */
  add(op: NetChange["op"], table: RowTable, key: string | number, columns: object): number {
    const name = `${table} ${key}`;
    const change = { op, table, key, columns: { ...columns } };
    const net = combine(this.#changes.get(name), change);
    if (net) this.#changes.set(name, net);
    else this.#changes.delete(name);
    return Object.values(net?.columns ?? {}).reduce<number>((sum, value) => sum + String(value ?? "").length + 3, 60);
  }

  /** Rows that free a slot in a unique index come before rows that take it. */
  toWrites(): RowWrite[] {
    const changes = [...this.#changes.values()];
    const supersededAt = "supersededAt" satisfies keyof BadgeRow;
    const gives = ({ op, columns }: NetChange) => op === "delete" || (op === "update" && columns[supersededAt] != null);
    return [...group(changes.filter(gives)), ...group(changes.filter((change) => !gives(change)))];
  }
}

function combine(before: NetChange | undefined, change: NetChange): NetChange | null {
  if (!before) return change;
  const columns = { ...before.columns, ...change.columns };
  if (change.op === "delete") return before.op === "insert" ? null : change;
  // A row that D1 has and that was deleted and inserted again in this group: all of its columns are new.
  if (before.op === "delete") return { ...change, op: "update" };
  return { ...before, columns };
}

/** Rows that have the same columns share a write. Columns that are null in an inserted row are left out. */
function group(changes: readonly NetChange[]): RowWrite[] {
  const byShape = Map.groupBy(changes, (change) => `${change.op} ${change.table} ${namesOf(change).join()}`);
  return [...byShape.values()].flatMap((rows) => {
    const [first] = rows;
    if (!first) return [];
    const key = ROW_KEYS[first.table];
    const names = namesOf(first);
    return [
      {
        op: first.op,
        table: first.table,
        columns: [key, ...names],
        rows: rows.map((row) => [row.key, ...names.map((name) => loggedValue(name, row.columns[name] ?? null))]),
      },
    ];
  });
}

/** Metadata is stored as JSON, not as text in JSON, whose quotation marks would take two to four bytes each. */
const loggedValue = (name: string, value: Value): Value =>
  name === ("metadata" satisfies keyof BadgeRow) && typeof value === "string" ? JSON.parse(value) : value;

function namesOf({ op, table, columns }: NetChange): string[] {
  const names = Object.keys(columns).filter((name) => name !== ROW_KEYS[table]);
  return op === "insert" ? names.filter((name) => columns[name] !== null) : names;
}
