import { sql } from "drizzle-orm";
import * as z from "zod";
import type { Database } from "./database.ts";

const clockRows = z.tuple([z.object({ now: z.number() })]);

/** The time in D1, in milliseconds: this computer's clock may be wrong by hours. */
export async function readClock(database: Database): Promise<number> {
  const rows = await database.run((orm) => orm.all(sql`SELECT cast(unixepoch('subsec') * 1000 AS INTEGER) AS now`));
  return clockRows.parse(rows)[0].now;
}
