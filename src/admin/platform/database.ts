import type { D1Database } from "@cloudflare/workers-types";
import { type DrizzleD1Database, drizzle } from "drizzle-orm/d1";
import * as schema from "../../shared/schema.ts";
import { retryDatabase } from "./retry.ts";

export type Orm = DrizzleD1Database<typeof schema>;

/** D1 for one command. */
export class Database {
  readonly #orm: Orm;

  constructor(d1: D1Database) {
    this.#orm = drizzle(d1, { schema });
  }

  /** Runs one step, which may be repeated: a read, one conditional statement, or one batch of them. */
  run<T>(step: (orm: Orm) => Promise<T>): Promise<T> {
    return retryDatabase(() => step(this.#orm));
  }
}
