/** What became of the rows of one table. */
export interface RowChanges<Key, Row> {
  inserted: Row[];
  /** With the columns that have other values than before, and no others. */
  updated: { key: Key; columns: Partial<Row> }[];
  deleted: Key[];
}

/** The rows of one table that a group of commands has read: as they are stored, and as its decisions leave them. */
export class RowSet<Key extends string | number, Row extends object> {
  readonly #stored = new Map<Key, Row>();
  readonly #rows = new Map<Key, Row>();

  /** Adds a row as D1 has it. */
  load(key: Key, row: Row): void {
    if (this.#stored.has(key)) return;
    this.#stored.set(key, row);
    this.#rows.set(key, row);
  }

  get(key: Key): Row | undefined {
    return this.#rows.get(key);
  }

  /** @param row a new object: rows are not changed in place */
  set(key: Key, row: Row): void {
    this.#rows.set(key, row);
  }

  delete(key: Key): void {
    this.#rows.delete(key);
  }

  values(): IterableIterator<Row> {
    return this.#rows.values();
  }

  changes(): RowChanges<Key, Row> {
    const inserted = [...this.#rows].flatMap(([key, row]) => (this.#stored.has(key) ? [] : [row]));
    const deleted = [...this.#stored.keys()].filter((key) => !this.#rows.has(key));
    const updated = [...this.#rows].flatMap(([key, row]) => {
      const stored = this.#stored.get(key);
      if (!stored || stored === row) return [];
      const columns = differences(stored, row);
      return Object.keys(columns).length > 0 ? [{ key, columns }] : [];
    });
    return { inserted, updated, deleted };
  }
}

function differences<Row extends object>(before: Row, after: Row): Partial<Row> {
  const columns: Partial<Row> = {};
  for (const name in after) if (after[name] !== before[name]) columns[name] = after[name];
  return columns;
}
