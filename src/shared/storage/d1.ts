import type { D1Database, D1Result } from "@cloudflare/workers-types";
import type { DrizzleD1Database } from "drizzle-orm/d1";
import * as z from "zod";
import type * as schema from "../schema.ts";

export type Orm = DrizzleD1Database<typeof schema>;

/** D1 as a program reaches it: the Worker by its binding, the administration script through wrangler. */
export interface Database {
  /** Runs one read, one idempotent statement or one batch of those, and repeats it while that may help. */
  run<T>(query: (orm: Orm, d1: D1Database) => Promise<T>): Promise<T>;
}

const writtenRows = z.array(z.object({ written: z.string() }));

/** The IDs that a statement returned in its column `written`. */
export function writtenIds(result: D1Result | undefined): Set<string> {
  return new Set(writtenRows.parse(result?.results ?? []).map(({ written }) => written));
}
