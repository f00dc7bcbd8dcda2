import { FreedNumbers } from "./freed-numbers.ts";
import { FreshNumbers, type NumberRange } from "./fresh-numbers.ts";
import { createTables } from "./ledger-tables.ts";
import { firstRow, integer, type Row } from "./sql.ts";

export type Lease = { kind: "leased"; number: number } | { kind: "exhausted" };

/** What an object says of an invitation's number: D1 may have been restored to an older state. */
export type ClaimStanding = "held" | "given-back" | "claimed-by-another";

export interface UnconfirmedLease {
  id: number;
  holder: string;
  number: number;
}

/**
 * Which number is leased to which holder, in the SQLite storage of one application's object. A holder is one user
 * device or one invitation. Every method is synchronous, hence atomic: nothing else of the object runs in between
 * (Durable Objects: writes without an `await` between them are one transaction).
 *
 * A lease stays for ever once D1 holds its badge. So when D1 is restored to an older state, the numbers issued since
 * then are not handed to anybody else, and a device that asks again gets its old one.
 */
export class Ledger {
  readonly #sql: SqlStorage;
  readonly #fresh: FreshNumbers;
  readonly #freed: FreedNumbers;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    createTables(sql);
    this.#fresh = new FreshNumbers(sql);
    this.#freed = new FreedNumbers(sql);
  }

  /**
   * The holder's number: the one it has, else a fresh one, else one of the freed ones past the reuse delay, drawn at
   * random. A number that was leased is handed out again only after `release`. None beyond the range is handed out; one
   * that a holder has been confirmed with stays its own.
   *
   * @param now milliseconds
   */
  lease(holder: string, range: NumberRange, reuseAfterSeconds: number, now: number): Lease {
    const held = this.#first("SELECT number, confirmed, claimed_by FROM lease WHERE holder = ?", holder);
    const isKept = held && (held.confirmed === 1 || held.claimed_by !== null || integer(held.number) <= range.last);
    if (held && isKept) {
      // An hour counts from the last try, so that reclaiming never meets a request under way.
      if (held.confirmed === 0) this.#sql.exec("UPDATE lease SET leased_at = ? WHERE holder = ?", now, holder);
      return { kind: "leased", number: integer(held.number) };
    }
    if (held) {
      this.#sql.exec("DELETE FROM lease WHERE holder = ?", holder);
      this.#freed.setAside(integer(held.number), now);
    }
    const rules = { lastNumber: range.last, reuseAfterSeconds, now };
    this.#freed.update(rules);
    const number = this.#fresh.take(range, (beyond) => this.#freed.setAside(beyond, now)) ?? this.#freed.take(rules);
    if (number === null) return { kind: "exhausted" };
    this.#sql.exec("INSERT INTO lease (holder, number, leased_at, confirmed) VALUES (?, ?, ?, 0)", holder, number, now);
    return { kind: "leased", number };
  }

  /** How many numbers of the range nobody has had yet. */
  countFresh(range: NumberRange): number {
    return this.#fresh.countLeft(range);
  }

  /**
   * How many released numbers can be leased: those that rest are not among them. Null while more of them wait to be looked
   * at than one lease looks at.
   */
  countReady(range: NumberRange, reuseAfterSeconds: number, now: number): number | null {
    const isUpToDate = this.#freed.isUpToDate({ lastNumber: range.last, reuseAfterSeconds, now });
    return isUpToDate ? this.#freed.countReady() : null;
  }

  /** Notes that D1 holds the badge or reservation of this lease: it is never reclaimed. */
  confirm(holder: string, number: number): void {
    this.#sql.exec("UPDATE lease SET confirmed = 1 WHERE holder = ? AND number = ? AND confirmed = 0", holder, number);
  }

  /** Whether a claimant may have the number of this holder, an invitation. */
  mayClaim(holder: string, number: number, claimant: string): ClaimStanding {
    const held = this.#first("SELECT number, claimed_by FROM lease WHERE holder = ?", holder);
    if (held?.number !== number) return "given-back";
    return held.claimed_by === null || held.claimed_by === claimant ? "held" : "claimed-by-another";
  }

  /**
   * Notes who claimed: should D1 forget it, nobody else gets the number. That D1 held the number is certain, too. Repeated,
   * it does nothing.
   */
  noteClaim(holder: string, number: number, claimant: string): void {
    this.#sql.exec(
      "UPDATE lease SET claimed_by = ?, confirmed = 1 WHERE holder = ? AND number = ? AND claimed_by IS NULL",
      claimant,
      holder,
      number,
    );
  }

  /**
   * Ends a holder's lease of this number, which joins the freed ones. Repeated, it does nothing. Nor does it when the
   * holder has another number by now: D1's badges were adopted meanwhile. Nor when the number was claimed: D1 was restored
   * to before that, and now says that the invitation ended unclaimed.
   *
   * @param number null: whichever it has
   * @param freedAt milliseconds; it may lie back, when an invitation's end is noticed late
   */
  release(holder: string, number: number | null, freedAt: number): boolean {
    const released = this.#first(
      "DELETE FROM lease WHERE holder = ?1 AND number = coalesce(?2, number) AND claimed_by IS NULL RETURNING number",
      holder,
      number,
    );
    if (!released) return false;
    this.#freed.add(integer(released.number), freedAt);
    return true;
  }

  /** Notes that the badge of this lease was revoked, so that `reconcile` can repeat it. */
  noteRevocation(holder: string, number: number, revokedAt: number): void {
    this.#sql.exec("UPDATE lease SET revoked_at = ? WHERE holder = ? AND number = ?", revokedAt, holder, number);
  }

  isRevoked(holder: string, number: number): boolean {
    const query = "SELECT 1 FROM lease WHERE holder = ? AND number = ? AND revoked_at IS NOT NULL";
    return this.#first(query, holder, number) !== undefined;
  }

  /** Ends a lease whose number D1 knows as somebody else's. The number is not free: nobody gets it from here again. */
  markTaken(holder: string, number: number): void {
    this.#sql.exec("DELETE FROM lease WHERE holder = ? AND number = ?", holder, number);
  }

  /** Leases that were never confirmed and not asked for since `before` (milliseconds), oldest first. */
  unconfirmed(before: number, limit: number): UnconfirmedLease[] {
    return this.#sql
      .exec(
        `SELECT id, holder, number FROM lease
         WHERE id > (SELECT scanned_through FROM reclaim) AND confirmed = 0 AND leased_at <= ? ORDER BY id LIMIT ?`,
        before,
        limit,
      )
      .toArray()
      .map((row) => ({ id: integer(row.id), holder: String(row.holder), number: integer(row.number) }));
  }

  /** When the longest unconfirmed lease was last asked for, in milliseconds; null when all are confirmed. */
  oldestUnconfirmed(): number | null {
    const oldest = this.#first(
      `SELECT min(leased_at) AS leased_at FROM lease
       WHERE id > (SELECT scanned_through FROM reclaim) AND confirmed = 0`,
    );
    return oldest?.leased_at == null ? null : integer(oldest.leased_at);
  }

  /** Releases a lease only if it is still unconfirmed and still as old: a request may have come meanwhile. */
  reclaim(id: number, before: number, now: number): boolean {
    const reclaimed = this.#first(
      "DELETE FROM lease WHERE id = ? AND confirmed = 0 AND leased_at <= ? RETURNING number",
      id,
      before,
    );
    if (!reclaimed) return false;
    this.#freed.add(integer(reclaimed.number), now);
    return true;
  }

  /**
   * Moves the scan's start past all that is confirmed, so that a lease is looked at for an hour and never again.
   *
   * @returns whether any lease is still unconfirmed
   */
  finishScan(): boolean {
    const open = this.#first(
      "SELECT min(id) AS id FROM lease WHERE id > (SELECT scanned_through FROM reclaim) AND confirmed = 0",
    );
    if (open?.id != null) {
      this.#sql.exec("UPDATE reclaim SET scanned_through = ?", integer(open.id) - 1);
      return true;
    }
    this.#sql.exec("UPDATE reclaim SET scanned_through = coalesce((SELECT max(id) FROM lease), 0)");
    return false;
  }

  /** Freed numbers any of which may come next, drawn at random, without leasing them. */
  sampleReady(count: number): number[] {
    return this.#freed.sample(count);
  }

  /** The next fresh numbers, without leasing them. */
  peekFresh(count: number): number[] {
    return this.#fresh.peek(count);
  }

  /** Passes over those of the numbers that D1 knows: this object was restored to an older state. */
  skipTaken(taken: ReadonlySet<number>): void {
    this.#freed.remove(taken);
    this.#fresh.skip(taken);
  }

  #first(query: string, ...bindings: SqlStorageValue[]): Row | undefined {
    return firstRow(this.#sql, query, ...bindings);
  }
}
