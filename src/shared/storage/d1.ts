import type { D1Database } from "@cloudflare/workers-types";

/** D1 as a program reaches it: the Worker by its binding, the administration script through wrangler. */
export interface Database {
  /** Runs one read, one idempotent statement or one batch of those, and repeats it while that may help. */
  run<T>(query: (d1: D1Database) => Promise<T>): Promise<T>;
}
