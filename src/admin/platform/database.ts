import { setTimeout as wait } from "node:timers/promises";
import type { D1Database } from "@cloudflare/workers-types";
import { type DrizzleD1Database, drizzle } from "drizzle-orm/d1";
import * as schema from "../../shared/schema.ts";
import { UserError } from "../errors.ts";

export type Orm = DrizzleD1Database<typeof schema>;

/** D1, as one command uses it. */
export class Database {
  readonly #orm: Orm;

  constructor(d1: D1Database) {
    this.#orm = drizzle(d1, { schema });
  }

  /** Runs one step, and repeats it if need be: so a step is a read, one idempotent statement, or one batch of those. */
  run<T>(step: (orm: Orm) => Promise<T>): Promise<T> {
    return retryDatabase(() => step(this.#orm));
  }
}

/**
 * Errors of D1 after which a statement may be repeated. The first three occur locally, where this script and the
 * service share a file ("internal error" means a lock at the end of a transaction); the others come from the deployed
 * database.
 */
const RETRYABLE = [
  "SQLITE_BUSY",
  "database is locked",
  "internal error",
  "Network connection lost",
  "storage caused object to be reset",
  "reset because its code was updated",
  "Cannot resolve D1 DB due to transient issue",
];

const TRIES = 12;
const FIRST_WAIT_MILLISECONDS = 40;
const LONGEST_WAIT_MILLISECONDS = 1000;

/** Runs a step that may be repeated until it succeeds, with full jitter, for about five seconds. */
export async function retryDatabase<T>(step: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await step();
    } catch (error) {
      if (!isRetryable(error)) throw error;
      if (attempt === TRIES) throw new UserError("The database is busy: try again in a moment.", { cause: error });
      const longest = Math.min(LONGEST_WAIT_MILLISECONDS, FIRST_WAIT_MILLISECONDS * 2 ** attempt);
      await wait(Math.random() * longest);
    }
  }
}

function isRetryable(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { message } = cause;
    if (RETRYABLE.some((text) => message.includes(text))) return true;
  }
  return false;
}
