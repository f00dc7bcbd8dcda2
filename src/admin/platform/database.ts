import { setTimeout as wait } from "node:timers/promises";
import type { D1Database } from "@cloudflare/workers-types";
import { type DrizzleD1Database, drizzle } from "drizzle-orm/d1";
import * as schema from "../../shared/schema.ts";
import { UserError } from "../errors.ts";

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

/**
 * What D1 says when a statement may be sent again. The first three come up locally, where this script and the service
 * share a file ("internal error" is how a lock at the end of a transaction is told); the others are of the deployed
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

/** Repeats a step that may be repeated, with full jitter in between, for about five seconds. */
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
