import { isDeepStrictEqual } from "node:util";
import type { ChangePage } from "../../../../src/worker/badges/changes.ts";
import { Part } from "../member.ts";
import type { ApplicationPlan } from "../plan.ts";
import type { Row } from "../platform/sqlite.ts";

type Change = ChangePage["changes"][number];

/** A copy of an application's badges, kept by GET /v1/changes and a cursor that may be old (contract section 13). */
export class Follower extends Part<{ application: ApplicationPlan; name: string }> {
  readonly #application = this.subject.application;
  readonly #dice = this.world.dice.of(`${this.subject.name} follower of ${this.#application.id}`);
  readonly #copy = new Map<string, Change>();
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
      // As JSON has it: without members that are undefined.
      this.#copy.set(change.id, JSON.parse(JSON.stringify(change)));
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
    const { d1, timeline, verdict } = this.world;
    await this.follow();
    const sql = "SELECT * FROM badge WHERE application_id = ? AND ordinal IS NOT NULL";
    const badges = new Map(
      d1.look(sql, this.#application.id).map((row) => [String(row.number), seen(row, timeline.now)]),
    );
    const isExact = isDeepStrictEqual(this.#copy, badges);
    verdict.expect(isExact, "the feed ends as an exact copy of the badges", ...this.#copy, "not", ...badges);
  }
}

/** What the feed must say of a row. */
function seen(row: Row, now: number): object {
  const { metadata, expires_at: end, key_thumbprint: keyThumbprint } = row;
  const isFinal = row.state === "revoked" || row.state === "replaced";
  const isExpired = !isFinal && end !== null && Number(end) <= now;
  return {
    id: String(row.number),
    userId: row.user_id,
    state: isExpired ? "expired" : row.state,
    ...(metadata !== null && { metadata: JSON.parse(String(metadata)) }),
    ...(end !== null && { expiresAt: new Date(Number(end)).toISOString() }),
    ...(keyThumbprint !== null && { keyThumbprint }),
    change: row.change,
    issuedAt: new Date(Number(row.issued_at)).toISOString(),
    changedAt: new Date(Number(row.changed_at)).toISOString(),
  };
}
