import type { D1Database, D1PreparedStatement, D1Result } from "@cloudflare/workers-types";
import * as z from "zod";
import { type Account, CloudflareApiError, CloudflareNoResponse } from "./cloudflare.ts";

/** Values that can be bound to a statement. No column of this service holds bytes. */
const parameters = z.array(z.union([z.string(), z.number(), z.null(), z.boolean().transform(Number)]));

/**
 * The response of D1's REST interface to a batch, with one item for each statement. Rows are arrays, because two columns may
 * have the same name.
 */
const responses = z.array(
  z.object({
    results: z.object({ columns: z.array(z.string()), rows: z.array(z.any()) }),
    meta: z.looseObject({
      duration: z.number().default(0),
      size_after: z.number().default(0),
      rows_read: z.number().default(0),
      rows_written: z.number().default(0),
      last_row_id: z.number().default(0),
      changed_db: z.boolean().default(false),
      changes: z.number().default(0),
    }),
  }),
);
type StatementResponse = z.output<typeof responses>[number];

/**
 * A deployed database with the interface of D1's binding, as far as Drizzle and the commands use it. A batch is one
 * transaction.
 */
export function restD1(account: Account, databaseId: string): D1Database {
  const send: Send = (statements) => sendBatch(account, databaseId, statements);
  const unsupported = () => {
    throw new Error("not available through D1's REST interface");
  };
  return {
    prepare: (sql) => new Statement(send, sql, []),
    async batch<T>(statements: D1PreparedStatement[]): Promise<D1Result<T>[]> {
      const ours = statements.filter((statement) => statement instanceof Statement);
      if (ours.length !== statements.length) throw new Error("a statement of another database");
      return (await send(ours)).map((response) => withObjects<T>(response));
    },
    exec: unsupported,
    withSession: unsupported,
    dump: unsupported,
  };
}

type Send = (statements: readonly Statement[]) => Promise<StatementResponse[]>;

/** @throws Error with the messages of D1's binding */
async function sendBatch(
  account: Account,
  databaseId: string,
  statements: readonly Statement[],
): Promise<StatementResponse[]> {
  const batch = statements.map(({ sql, params }) => ({ sql, params }));
  try {
    return await account.call(responses, { method: "POST", path: `/d1/database/${databaseId}/raw`, body: { batch } });
  } catch (error) {
    // The binding's message for it, so that the step is repeated: every step of a command may be.
    if (error instanceof CloudflareNoResponse) throw new Error("Network connection lost.", { cause: error });
    if (error instanceof CloudflareApiError) {
      throw new Error(`D1_ERROR: ${error.reason}`, { cause: new Error(error.reason) });
    }
    throw error;
  }
}

class Statement implements D1PreparedStatement {
  readonly #send: Send;
  readonly sql: string;
  readonly params: z.output<typeof parameters>;

  constructor(send: Send, sql: string, params: z.output<typeof parameters>) {
    this.#send = send;
    this.sql = sql;
    this.params = params;
  }

  bind(...values: unknown[]): Statement {
    return new Statement(this.#send, this.sql, parameters.parse(values));
  }

  async all<T>(): Promise<D1Result<T>> {
    return withObjects(await this.#response());
  }

  run<T>(): Promise<D1Result<T>> {
    return this.all();
  }

  async first<T>(column?: string): Promise<T | null> {
    const { columns, rows } = (await this.#response()).results;
    const [row] = rows;
    if (row === undefined) return null;
    return column === undefined ? withNames(columns, row) : row[columns.indexOf(column)];
  }

  raw<T>(options: { columnNames: true }): Promise<[string[], ...T[]]>;
  raw<T>(options?: { columnNames?: false }): Promise<T[]>;
  async raw<T>({ columnNames = false }: { columnNames?: boolean } = {}): Promise<T[] | [string[], ...T[]]> {
    const { columns, rows }: RawRows<T> = (await this.#response()).results;
    return columnNames ? [columns, ...rows] : rows;
  }

  async #response(): Promise<StatementResponse> {
    const [response] = await this.#send([this]);
    if (response === undefined) throw new Error("D1 gives one result for each statement");
    return response;
  }
}

/** Rows of the type that the caller claims, as with D1's binding. */
interface RawRows<T> {
  columns: string[];
  rows: T[];
}

const withNames = (columns: readonly string[], row: StatementResponse["results"]["rows"][number]) =>
  Object.fromEntries(columns.map((column, index) => Array.of(column, row[index])));

const withObjects = <T>({ results: { columns, rows }, meta }: StatementResponse): D1Result<T> => ({
  success: true,
  results: rows.map((row): T => withNames(columns, row)),
  meta,
});
