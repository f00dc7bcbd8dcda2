import { z } from "zod";
import type { Statement } from "./d1.ts";
import { homeDatabase } from "./home.ts";

const bill = z.object({ meta: z.object({ rows_read: z.number(), rows_written: z.number() }) });
const bills = z.union([z.array(bill).min(1), bill.transform((one) => [one])]);

interface Bill {
  rowsRead: number;
  rowsWritten: number;
}

/** Bills of writes whose rows came bare. */
const billed = new WeakMap<object, unknown>();

/** Runs a statement whose rows come bare. One that writes cannot be asked again, so its bill is kept. */
export async function runBare(statement: D1PreparedStatement, sql: string): Promise<unknown[][]> {
  if (/^\s*(select|with)\b/i.test(sql)) return statement.raw();
  const told = await statement.all<Record<string, unknown>>();
  const rows = told.results.map((row) => Object.values(row));
  billed.set(rows, told);
  return rows;
}

/**
 * What D1 said that a round trip read and wrote, as it is billed. Bare rows come without; then the statement, which
 * reads only, is asked again for its bill.
 */
export async function billOf(statements: readonly Statement[], result: unknown): Promise<Bill> {
  const told = bills.safeParse(billed.get(Object(result)) ?? result);
  const asked = told.success ? told.data : bills.parse(await homeDatabase().batch(statements.map(prepareRead)));
  return {
    rowsRead: asked.reduce((sum, { meta }) => sum + meta.rows_read, 0),
    rowsWritten: asked.reduce((sum, { meta }) => sum + meta.rows_written, 0),
  };
}

function prepareRead({ sql, parameters }: Statement): D1PreparedStatement {
  if (!/^\s*(select|with)\b/i.test(sql)) throw new Error("only a statement that reads may be asked twice");
  return homeDatabase()
    .prepare(sql)
    .bind(...parameters);
}
