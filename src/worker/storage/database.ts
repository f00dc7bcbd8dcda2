import { NEAR_DEADLINE_MILLISECONDS } from "../../shared/limits/cache-limits.ts";
import { PLATFORM_DEADLINE_MILLISECONDS } from "../../shared/limits/platform-limits.ts";
import { isLocked, isRetryable } from "../../shared/retryable.ts";
import { log } from "../log.ts";
import { retryPlatform, withDeadline } from "../platform.ts";
import type { Statement } from "./statement.ts";

/**
 * One home's D1, for one request, one batch of messages or one sweep. It counts calls to the primary and retries transient
 * failures. So every write must be repeatable: it finds its work done, or does all of it in one transaction. D1 itself
 * retries a statement that only reads (D1: Retry queries), so `all` and `allAtPrimary` retry only a local lock.
 *
 * All calls go to the primary, except `allAtNearest`. Badge calls use sessions (D1: Sessions API), whose bookmarks let
 * a replica serve the device's next call (contract section 16).
 */
export class Database {
  readonly d1: D1Database;
  #primaryCalls = 0;
  #bookmark: string | null = null;

  constructor(d1: D1Database) {
    this.d1 = d1;
  }

  /** Calls to D1 so far, retries included, except those that a replica answered. Failed calls count: they may have reached the primary. */
  get primaryCalls(): number {
    return this.#primaryCalls;
  }

  /** The bookmark of the last session; null without a session. */
  get bookmark(): string | null {
    return this.#bookmark;
  }

  /** @param bookmark of the allocator's session; null without one */
  noteBookmark(bookmark: string | null): void {
    this.#bookmark = bookmark;
  }

  /** The rows of a statement that only reads. One round trip. */
  all<Values, Row>(statement: Statement<Values, Row>, values: Values): Promise<Row[]> {
    return this.#run((d1) => statement.all(d1, values), PLATFORM_DEADLINE_MILLISECONDS, isLocked);
  }

  /** Like `all`, but in a session. */
  allAtPrimary<Values, Row>(statement: Statement<Values, Row>, values: Values): Promise<Row[]> {
    return this.#atPrimary((session) => statement.all(session, values), isLocked);
  }

  /** Runs a statement that returns nothing. One round trip. @returns the number of changed rows */
  async write<Values>(statement: Statement<Values, never>, values: Values): Promise<number> {
    const { meta } = await this.run((d1) => statement.bind(d1, values).run());
    return meta.changes;
  }

  /**
   * Reads the nearest replica of D1, which may be the primary. If that fails or takes a second, reads the primary.
   *
   * @param bookmark minimum version, for which an older replica waits; null for any replica
   * @returns the rows, and whether the primary returned them
   * @throws Unavailable when the primary fails too
   */
  async allAtNearest<Values, Row>(
    statement: Statement<Values, Row>,
    values: Values,
    bookmark: string | null,
  ): Promise<{ rows: Row[]; isPrimary: boolean }> {
    const session = this.d1.withSession(bookmark ?? "first-unconstrained");
    try {
      const read = () => statement.bind(session, values).all();
      // Without retries: the read at the primary is the retry.
      const result = await withDeadline("D1", NEAR_DEADLINE_MILLISECONDS, read);
      // D1 reports this with every response of a session (D1: Sessions API). The local D1, which has no replicas, does
      // not.
      const isPrimary = result.meta.served_by_primary !== false;
      if (isPrimary) this.#primaryCalls++;
      this.#bookmark = session.getBookmark();
      return { rows: statement.rows(result), isPrimary };
    } catch (error) {
      this.#primaryCalls++;
      log("warn", { event: "replica-read-failed", error });
      return { rows: await this.allAtPrimary(statement, values), isPrimary: true };
    }
  }

  /**
   * Runs one batch at the primary once. Before a retry, the caller has to find out the batch's outcome.
   *
   * @throws Unavailable when D1 fails or does not respond in time
   */
  onceAtPrimary<T>(query: (session: D1DatabaseSession) => Promise<T>): Promise<T> {
    return this.#atPrimary(query, () => false);
  }

  /**
   * Runs one query or batch at the primary, in a session of its own, because the second read of a session may go to a
   * replica.
   *
   * @throws Unavailable when D1 fails or does not respond in time
   */
  atPrimary<T>(query: (session: D1DatabaseSession) => Promise<T>): Promise<T> {
    return this.#atPrimary(query, isRetryable);
  }

  async #atPrimary<T>(
    query: (session: D1DatabaseSession) => Promise<T>,
    mayRetry: (error: unknown) => boolean,
  ): Promise<T> {
    let session: D1DatabaseSession | undefined;
    const call = () => {
      this.#primaryCalls++;
      session = this.d1.withSession("first-primary");
      return query(session);
    };
    const result = await retryPlatform("D1", call, PLATFORM_DEADLINE_MILLISECONDS, mayRetry);
    // Set here, because a try that finishes after the deadline does not get this far.
    this.#bookmark = session?.getBookmark() ?? null;
    return result;
  }

  /**
   * @param deadlineMilliseconds for the round trip, retries included; by default, that of every platform call
   * @throws Unavailable when D1 fails or does not respond in time
   */
  run<T>(query: (d1: D1Database) => Promise<T>, deadlineMilliseconds = PLATFORM_DEADLINE_MILLISECONDS): Promise<T> {
    return this.#run(query, deadlineMilliseconds, isRetryable);
  }

  #run<T>(
    query: (d1: D1Database) => Promise<T>,
    deadlineMilliseconds: number,
    mayRetry: (error: unknown) => boolean,
  ): Promise<T> {
    const call = () => {
      this.#primaryCalls++;
      return query(this.d1);
    };
    return retryPlatform("D1", call, deadlineMilliseconds, mayRetry);
  }
}
