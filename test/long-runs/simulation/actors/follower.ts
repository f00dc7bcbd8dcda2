import { isDeepStrictEqual } from "node:util";
import { Part } from "../member.ts";
import type { ApplicationPlan } from "../plan.ts";

/** A copy of an application's badges, kept by GET /v1/changes and a cursor that may be old (contract section 13). */
export class Follower extends Part<{ application: ApplicationPlan; name: string }> {
  readonly #application = this.subject.application;
  readonly #dice = this.world.dice.of(`${this.subject.name} follower of ${this.#application.id}`);
  /** By badge, the number of its last change. */
  readonly #copy = new Map<string, number>();
  #cursor: string | null = null;
  #lastChange = 0;

  /** Reads one page. @returns whether more follow */
  async read(): Promise<boolean> {
    const { clients, verdict, administrator } = this.world;
    const cursor = this.#cursor;
    const credentials = administrator.credentialsOf(this.#application);
    const outcome = await clients.call("changes", { ...credentials, cursor, perPage: this.#dice.between(1, 4) });
    if (outcome.kind === "refused" && outcome.reason === "EXPIRED_CURSOR") {
      this.#copy.clear();
      [this.#cursor, this.#lastChange] = [null, 0];
      return true;
    }
    // Another read of the same follower was faster.
    if (outcome.kind !== "granted" || this.#cursor !== cursor) return false;
    for (const change of outcome.granted.changes) {
      const isNext = change.change > this.#lastChange;
      verdict.expect(isNext, "changes come in order, and none twice", change, this.#lastChange);
      this.#lastChange = change.change;
      this.#copy.set(change.id, change.change);
    }
    this.#cursor = outcome.granted.cursor;
    return outcome.granted.more;
  }

  /** Reads until nothing more follows, or a page cannot be had. */
  async follow(): Promise<void> {
    while (await this.read());
  }

  /** The same when nothing fails: then the copy is exact. */
  async followToEnd(): Promise<void> {
    const { d1, verdict } = this.world;
    await this.follow();
    const sql = "SELECT number, change FROM badge WHERE application_id = ? AND ordinal IS NOT NULL";
    const there = new Map(d1.look(sql, this.#application.id).map(({ number, change }) => [String(number), change]));
    const isExact = isDeepStrictEqual(this.#copy, there);
    verdict.expect(isExact, "the feed ends with the last change of every badge", ...this.#copy, "not", ...there);
  }
}
