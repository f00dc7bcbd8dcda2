import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { DatabaseSync } from "node:sqlite";
import * as z from "zod";
import { Account, CloudflareApiError } from "../../../src/admin/platform/cloudflare.ts";
import { Database } from "../../../src/admin/platform/database.ts";
import { Homes } from "../../../src/admin/platform/homes.ts";
import { migrationFiles } from "../../../src/admin/platform/migrations.ts";
import { restD1 } from "../../../src/admin/platform/rest-d1.ts";

/** D1's (workerd, `setupSecurity`; D1: Limits). */
const LIMITS = {
  sqlLength: 100_000,
  column: 100,
  exprDepth: 100,
  compoundSelect: 5,
  functionArg: 32,
  variableNumber: 100,
};

const value = z.union([z.string(), z.number(), z.null()]);
const statements = z.object({ batch: z.array(z.object({ sql: z.string(), params: z.array(value) })) });

/** An account with one D1, whose REST interface leads to a SQLite of this process. */
class SqliteAccount extends Account {
  readonly #db = new DatabaseSync(":memory:", { limits: LIMITS });

  constructor() {
    super("sqlite", {});
    this.#db.exec("CREATE TABLE d1_migrations (name TEXT)");
    for (const file of migrationFiles()) {
      this.#db.exec(readFileSync(file, "utf8"));
      this.#db.prepare("INSERT INTO d1_migrations VALUES (?)").run(basename(file));
    }
  }

  override async call<Shape extends z.ZodType>(result: Shape, { path, body }: Parameters<Account["call"]>[1]) {
    const { batch } = statements.parse(body);
    this.#db.exec("BEGIN");
    try {
      const responses = batch.map(({ sql, params }) => this.#run(sql, params));
      this.#db.exec("COMMIT");
      return result.parse(responses);
    } catch (error) {
      this.#db.exec("ROLLBACK");
      throw new CloudflareApiError(path, 400, error instanceof Error ? error.message : String(error));
    }
  }

  #run(sql: string, params: readonly z.output<typeof value>[]) {
    const statement = this.#db.prepare(sql);
    statement.setReturnArrays(true);
    const columns = statement.columns().map(({ name }) => name);
    if (columns.length === 0) {
      return { results: { columns, rows: [] }, meta: { changes: Number(statement.run(...params).changes) } };
    }
    const bytes = "SELECT page_count * page_size AS size_after FROM pragma_page_count(), pragma_page_size()";
    return { results: { columns, rows: statement.all(...params) }, meta: { ...this.#db.prepare(bytes).get() } };
  }
}

/**
 * Two homes as the script sees deployed ones, in the memory of this process: a statement takes a tenth of a millisecond,
 * where it takes several in a runtime of its own.
 */
export function sqliteHomes(): Homes {
  const home = (number: number) => ({ number, place: null, database: new Database(restD1(new SqliteAccount(), "d1")) });
  return new Homes([home(1), home(2)]);
}
