import { NEAR_DEADLINE_MILLISECONDS, PLATFORM_DEADLINE_MILLISECONDS } from "../../shared/limits.ts";
import { log } from "../log.ts";
import { retryPlatform, Unavailable, withDeadline } from "../platform.ts";
import type { Statement } from "./statement.ts";

/**
 * One home's D1, for one request, one batch of messages or one sweep. Counts far trips and retries transient failures, so
 * every write must be repeatable: it finds its work already done, or does all of it in one transaction.
 *
 * All calls go to the primary, except `allAtNearest`. Those of the badge calls go through sessions (D1: Sessions API), whose
 * bookmarks let the device's next call be served by a copy (contract section 16).
 */
export class Database {
  readonly d1: D1Database;
  #primaryCalls = 0;
  #bookmark: string | null = null;

  constructor(d1: D1Database) {
    this.d1 = d1;
  }

  /** Calls to D1 so far, retries included, that no copy near the caller answered: of one that failed nobody knows where it went. */
  get primaryCalls(): number {
    return this.#primaryCalls;
  }

  /** D1's state that the last session saw or made, as D1 names it; null: there was no session. */
  get bookmark(): string | null {
    return this.#bookmark;
  }

  /** @param bookmark of a session that the allocator had; null: it had none */
  noteBookmark(bookmark: string | null): void {
    this.#bookmark = bookmark;
  }

  /** The rows of a statement. One round trip. */
  all<Values, Row>(statement: Statement<Values, Row>, values: Values): Promise<Row[]> {
    return this.run((d1) => statement.all(d1, values));
  }

  /** The same, in a session. */
  allAtPrimary<Values, Row>(statement: Statement<Values, Row>, values: Values): Promise<Row[]> {
    return this.atPrimary((session) => statement.all(session, values));
  }

  /** Runs a statement that returns nothing. One round trip. @returns how many rows it changed */
  async write<Values>(statement: Statement<Values, never>, values: Values): Promise<number> {
    const { meta } = await this.run((d1) => statement.bind(d1, values).run());
    return meta.changes;
  }

  /**
   * Asks the nearest replica of D1, which may be the primary; if that fails or takes a second, the primary itself.
   *
   * @param bookmark a copy that is older waits until it is as new; null: any copy will do
   * @returns the rows, and whether they are the primary's
   * @throws Unavailable when the primary fails too
   */
  async allAtNearest<Values, Row>(
    statement: Statement<Values, Row>,
    values: Values,
    bookmark: string | null,
  ): Promise<{ rows: Row[]; isPrimary: boolean }> {
    const session = this.d1.withSession(bookmark ?? "first-unconstrained");
    try {
      const ask = () => statement.bind(session, values).all();
      // Without retries: asking the primary is one.
      const result = await withDeadline("D1", NEAR_DEADLINE_MILLISECONDS, ask);
      // D1 reports this with every response of a session (D1: Sessions API); only the local D1, which has no copies,
      // does not.
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
   * Runs one batch at the primary once: to repeat it, the caller has to find out first what happened to it.
   *
   * @throws Unavailable when D1 fails or does not respond in time
   */
  async onceAtPrimary<T>(query: (session: D1DatabaseSession) => Promise<T>): Promise<T> {
    const session = this.d1.withSession("first-primary");
    this.#primaryCalls++;
    try {
      const result = await withDeadline("D1", PLATFORM_DEADLINE_MILLISECONDS, () => query(session));
      this.#bookmark = session.getBookmark();
      return result;
    } catch (error) {
      throw error instanceof Unavailable ? error : new Unavailable("D1", error);
    }
  }

  /**
   * Runs one query or batch at the primary, in a session of its own: the second read of a session may go to a copy.
   *
   * @throws Unavailable when D1 fails or does not respond in time
   */
  async atPrimary<T>(query: (session: D1DatabaseSession) => Promise<T>): Promise<T> {
    let session: D1DatabaseSession | undefined;
    const result = await retryPlatform("D1", () => {
      this.#primaryCalls++;
      session = this.d1.withSession("first-primary");
      return query(session);
    });
    // Here, because a try that finishes after the deadline never gets this far.
    this.#bookmark = session?.getBookmark() ?? null;
    return result;
  }

  /**
   * @param deadlineMilliseconds for the round trip, retries included; if not given, that of every platform call
   * @throws Unavailable when D1 fails or does not respond in time
   */
  run<T>(query: (d1: D1Database) => Promise<T>, deadlineMilliseconds?: number): Promise<T> {
    const call = () => {
      this.#primaryCalls++;
      return query(this.d1);
    };
    return retryPlatform("D1", call, deadlineMilliseconds);
  }
}
