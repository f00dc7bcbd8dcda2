import type { D1Database } from "@cloudflare/workers-types";
import * as z from "zod";

/** Values that can be bound to a statement. No column of this service holds bytes. */
const parameters = z.array(z.union([z.string(), z.number(), z.null(), z.boolean().transform(Number)]));

/** The local database's response to one statement. */
const resultSchema = z.object({
  results: z.object({ columns: z.array(z.string()), rows: z.array(z.array(z.unknown())) }),
  meta: z.looseObject({ changes: z.number() }),
});
type Result = z.infer<typeof resultSchema>;

const responseSchema = z.union([z.array(resultSchema), z.object({ error: z.string() })]);

interface Fetcher {
  fetch(url: string, init: { method: string; body: string }): Promise<Response>;
}

/**
 * A local database of which every call is one request.
 *
 * wrangler gives a proxy of an object that lives in another process. There `prepare`, `bind`, `all`, and each first look
 * at one of them, are requests of their own, six for a query and more for a batch; during most of them this process
 * stands still. In the other process the object then sends one request to the database. This one sends the same request
 * itself, through the `fetcher` of that object (workerd, src/cloudflare/internal/d1-api.ts), which D1 does not document:
 * an object that has none is returned as it is.
 */
export function inOneRequest(d1: D1Database): D1Database {
  const fetcher: unknown = Reflect.get(d1, "fetcher");
  if (!isFetcher(fetcher)) return d1;
  const prepare = (sql: string) => new Statement(fetcher, sql, []);
  const batch = async (statements: readonly Statement[]) => (await send(fetcher, statements)).map(withObjects);
  return Object.create(d1, { prepare: { value: prepare }, batch: { value: batch } });
}

const isFetcher = (value: unknown): value is Fetcher =>
  typeof value === "object" && value !== null && "fetch" in value && typeof value.fetch === "function";

/** The part of D1PreparedStatement that Drizzle and the commands use. */
class Statement {
  readonly #fetcher: Fetcher;
  readonly sql: string;
  readonly params: z.infer<typeof parameters>;

  constructor(fetcher: Fetcher, sql: string, params: z.infer<typeof parameters>) {
    this.#fetcher = fetcher;
    this.sql = sql;
    this.params = params;
  }

  bind(...values: unknown[]): Statement {
    return new Statement(this.#fetcher, this.sql, parameters.parse(values));
  }

  async all() {
    return withObjects(await this.#send());
  }

  run() {
    return this.all();
  }

  async first() {
    return (await this.all()).results[0] ?? null;
  }

  async raw() {
    return (await this.#send()).results.rows;
  }

  async #send(): Promise<Result> {
    const [result] = await send(this.#fetcher, [this]);
    if (result === undefined) throw new Error("D1 gives one result for each statement");
    return result;
  }
}

/** One transaction. @throws Error with the message that D1's own binding has */
async function send(fetcher: Fetcher, statements: readonly Statement[]): Promise<Result[]> {
  const body = JSON.stringify(statements.map(({ sql, params }) => ({ sql, params })));
  const response = await fetcher.fetch("http://d1/query?resultsFormat=ROWS_AND_COLUMNS", { method: "POST", body });
  const results = parseResponse(await response.text());
  if (Array.isArray(results)) return results;
  throw new Error(`D1_ERROR: ${results.error}`, { cause: new Error(results.error) });
}

/** A body that is not JSON is an error message of the runtime, for example when another process holds a lock at the end of a transaction. */
function parseResponse(body: string): z.infer<typeof responseSchema> {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return { error: body };
  }
  return responseSchema.parse(json);
}

const withObjects = ({ results: { columns, rows }, meta }: Result) => ({
  success: true,
  results: rows.map((row) => Object.fromEntries(columns.map((column, index) => [column, row[index]]))),
  meta,
});
