import type { ApplicationId } from "../../../../src/shared/identifiers.ts";
import type { ChangePage } from "../../../../src/worker/badges/changes.ts";
import type { Dice } from "../../dice.ts";
import { Member } from "../member.ts";
import type { ApplicationPlan } from "../plan.ts";
import type { Row } from "../platform/sqlite.ts";
import type { Credentials } from "../service/door.ts";
import type { World } from "../world.ts";

type Change = ChangePage["changes"][number];

/** A copy of an application's badges, kept by GET /v1/changes and a cursor that may be old (contract section 13). */
export class Follower extends Member {
  readonly #dice: Dice;
  readonly applicationId: ApplicationId;
  readonly #name: string;
  readonly #credentials: () => Credentials;
  readonly #copy = new Map<string, Change>();
  #cursor: string | null = null;
  #lastChange = 0;
  /** Whether the cursor is one that must have expired. */
  #isOutdated = false;

  constructor(world: World, { id }: ApplicationPlan, name: string, credentials: () => Credentials) {
    super(world);
    this.#dice = world.dice.of(`${name} follower of ${id}`);
    this.applicationId = id;
    this.#name = name;
    this.#credentials = credentials;
  }

  /** D1 was restored, and forgot what the cursor is about: two minutes later it has expired. */
  expire(): void {
    this.#isOutdated = this.#cursor !== null;
  }

  /** Reads one page. @returns whether more follow; null when the page could not be had */
  async read(): Promise<boolean | null> {
    const { clients, verdict, trace } = this.world;
    const cursor = this.#cursor;
    const outcome = await clients.call("changes", {
      ...this.#credentials(),
      ...{ cursor, perPage: this.#dice.between(1, 4) },
    });
    if (outcome.kind === "refused" && outcome.reason === "EXPIRED_CURSOR") {
      trace.add("server", `the ${this.#name} follower starts again`);
      this.#copy.clear();
      [this.#cursor, this.#lastChange, this.#isOutdated] = [null, 0, false];
      return true;
    }
    // Another read of the same follower was faster.
    if (outcome.kind !== "granted" || this.#cursor !== cursor) return null;
    for (const change of outcome.granted.changes) {
      const isNext = change.change > this.#lastChange;
      verdict.expect(isNext, "changes come in order, and none twice", change, this.#lastChange);
      this.#lastChange = change.change;
      this.#copy.set(change.id, change);
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
    const wasOutdated = this.#isOutdated;
    await this.read();
    verdict.expect(!wasOutdated || !this.#isOutdated, "cursors expire after a restoration", this.#name);
    await this.follow();
    const sql = "SELECT * FROM badge WHERE application_id = ? AND position IS NOT NULL ORDER BY number";
    const rows = d1.look(sql, this.applicationId).map((row) => seen(row, timeline.now));
    const copied = [...this.#copy.values()].sort((one, other) => Number(one.id) - Number(other.id)).map(inOrder);
    const isExact = copied.join("\n") === rows.join("\n");
    verdict.expect(isExact, "the feed ends as an exact copy of the badges", this.#name, copied, "instead of", rows);
  }
}

const inOrder = ({ id, userId, state, metadata, expiresAt, keyThumbprint, change, changedAt }: Change): string =>
  JSON.stringify({ id, userId, state, metadata, expiresAt, keyThumbprint, change, changedAt });

/** What the feed must say of a row. */
function seen(row: Row, now: number): string {
  const isFinal = row.state === "revoked" || row.state === "replaced";
  const isExpired = !isFinal && row.expires_at !== null && Number(row.expires_at) <= now;
  const date = (time: Row[string]) => (time === null ? undefined : new Date(Number(time)).toISOString());
  return JSON.stringify({
    id: String(row.number),
    userId: row.user_id,
    state: isExpired ? "expired" : row.state,
    metadata: row.metadata === null ? undefined : JSON.parse(String(row.metadata)),
    expiresAt: date(row.expires_at ?? null),
    keyThumbprint: row.key_thumbprint ?? undefined,
    change: row.change,
    changedAt: date(row.changed_at ?? null),
  });
}
