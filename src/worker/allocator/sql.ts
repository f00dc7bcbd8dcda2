/** One row of an object's storage. */
export type Row = Record<string, SqlStorageValue>;

/** A statement's first row. Reads all rows, because a cursor must not stay open (Durable Objects: SQL API). */
export function firstRow(sql: SqlStorage, query: string, ...bindings: SqlStorageValue[]): Row | undefined {
  return sql.exec(query, ...bindings).toArray()[0];
}

export function integer(value: SqlStorageValue | undefined): number {
  if (typeof value !== "number") throw new TypeError("expected an integer from the object's storage");
  return value;
}
