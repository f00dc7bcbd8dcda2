import type { NumberRange } from "../../shared/number-range.ts";
import { type HighWater, NO_BADGE_YET } from "../../shared/storage/high-water.ts";
import { FreedNumbers } from "./freed-numbers.ts";
import { FreshNumbers } from "./fresh-numbers.ts";
import { type HolderKey, holderKeySchema } from "./holder.ts";
import { createTables, IS_UNCONFIRMED } from "./ledger-tables.ts";
import { Progress } from "./progress.ts";
import { firstRow, integer, type Row } from "./sql.ts";

/** `isNew`: this request made it; otherwise an earlier one may still be writing. */
export type Lease = { kind: "leased"; number: number; isNew: boolean } | { kind: "exhausted" };

/** Who has an invitation's number, by the ledger: D1 may have been restored to an older state. */
export type ClaimStanding = "held" | "released" | "claimed-by-another";

export interface UnconfirmedLease {
  id: number;
  holder: HolderKey;
  number: number;
}

/**
 * Which number is leased to which holder, in the SQLite storage of one application's object. A holder is one user
 * device or one invitation. Every method is synchronous, hence atomic: nothing else of the object runs in between
 * (Durable Objects: writes without an `await` between them are one transaction).
 *
 * A lease is permanent once D1 has its badge. If D1 is restored to an older state, the numbers issued since then are not
 * leased to anybody else, and a device that asks again gets its old one.
 */
export class Ledger {
  readonly progress: Progress;
  readonly #sql: SqlStorage;
  readonly #fresh: FreshNumbers;
  readonly #freed: FreedNumbers;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    createTables(sql);
    this.progress = new Progress(sql);
    this.#fresh = new FreshNumbers(sql);
    this.#freed = new FreedNumbers(sql);
  }

  /**
   * The holder's number: the one it has, else a fresh one, else a freed one past the reuse delay, drawn at random. A number
   * is leased again only after `release`. No number beyond the range is leased, but confirmed and claimed leases stay.
   *
   * @param now milliseconds
   */
  lease(holder: HolderKey, range: NumberRange, reuseAfterSeconds: number, now: number): Lease {
    const held = this.#first(
      `SELECT number, ${IS_UNCONFIRMED} AS unconfirmed, claimed_by FROM lease WHERE holder = ?`,
      holder,
    );
    if (held) {
      const isOpen = held.unconfirmed === 1;
      // The range has grown and the caller does not know it yet, or D1 was restored to before that. D1 may have the number, so
      // the lease stays until it is settled.
      if (isOpen && held.claimed_by === null && integer(held.number) > range.last) return { kind: "exhausted" };
      // The reclaim delay restarts with every try, so that no request is under way when a lease is reclaimed.
      if (isOpen) this.#sql.exec("UPDATE lease SET leased_at = ? WHERE holder = ?", now, holder);
      return { kind: "leased", number: integer(held.number), isNew: false };
    }
    const rules = { lastNumber: range.last, reuseAfterSeconds, now };
    this.#freed.update(rules);
    const number = this.#fresh.take(range, (beyond) => this.#freed.setAside(beyond, now)) ?? this.#freed.take(rules);
    if (number === null) return { kind: "exhausted" };
    this.#insert(holder, number, now);
    return { kind: "leased", number, isNew: true };
  }

  /**
   * A new lease's ID is higher than every earlier one, even those of ended leases: what `confirmGroup` and `finishScan` have
   * recorded holds for every lease up to an ID. AUTOINCREMENT, which tables of earlier releases have, would cost a row more.
   */
  #insert(holder: HolderKey, number: number, now: number): void {
    this.#sql.exec(
      `INSERT INTO lease (id, holder, number, leased_at, confirmed)
       SELECT 1 + max(confirmed_through, scanned_through, coalesce((SELECT max(id) FROM lease), 0)), ?, ?, ?, 2
       FROM progress, reclaim`,
      holder,
      number,
      now,
    );
  }

  /** How many numbers of the range were never leased. */
  countFresh(range: NumberRange): number {
    return this.#fresh.countLeft(range);
  }

  /**
   * How many released numbers can be leased now, resting ones excluded. Null while the tables of freed numbers are not up to
   * date.
   */
  countReady(range: NumberRange, reuseAfterSeconds: number, now: number): number | null {
    const isUpToDate = this.#freed.isUpToDate({ lastNumber: range.last, reuseAfterSeconds, now });
    return isUpToDate ? this.#freed.countReady() : null;
  }

  /** Records that D1 has the badge or reservation of this lease, so it is never reclaimed. */
  confirm(holder: HolderKey, number: number): void {
    const confirm = `UPDATE lease SET confirmed = 1 WHERE holder = ? AND number = ? AND ${IS_UNCONFIRMED}`;
    this.#sql.exec(confirm, holder, number);
  }

  /**
   * The same for the leases of a group, most of them just made. One row is written, with the highest numbers: it confirms every
   * newer lease. Those that D1 does not have are marked unconfirmed first, one by one. They are few: a failed group left them
   * behind, or D1 refused the badge.
   */
  confirmGroup(leases: readonly { holder: HolderKey; number: number }[], written: HighWater = NO_BADGE_YET): void {
    this.progress.note(written, leases.length === 0 ? undefined : this.#confirmNewer(leases));
  }

  /** @returns ID of the newest lease, if it is newer than the group before; no other lease up to it is left as new */
  #confirmNewer(leases: readonly { holder: HolderKey; number: number }[]): number | undefined {
    const confirmed = JSON.stringify(leases.map(({ holder, number }) => [holder, number]));
    this.#sql.exec(
      `UPDATE lease SET confirmed = 1 FROM json_each(?) AS asked
       WHERE lease.holder = asked.value ->> 0 AND lease.number = asked.value ->> 1 AND lease.confirmed = 0`,
      confirmed,
    );
    this.#sql.exec(
      `UPDATE lease SET confirmed = 0
       WHERE id > (SELECT confirmed_through FROM progress) AND confirmed = 2
         AND (holder, number) NOT IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`,
      confirmed,
    );
    const newest = this.#first("SELECT max(id) AS id FROM lease WHERE id > (SELECT confirmed_through FROM progress)");
    return newest?.id == null ? undefined : integer(newest.id);
  }

  /** Whether a claimant may have the number of `holder`, an invitation. @param claimant null: anybody who is not known */
  checkClaim(holder: HolderKey, number: number, claimant: HolderKey | null): ClaimStanding {
    const held = this.#first("SELECT number, claimed_by FROM lease WHERE holder = ?", holder);
    if (held?.number !== number) return "released";
    return held.claimed_by === null || held.claimed_by === claimant ? "held" : "claimed-by-another";
  }

  /**
   * Records the claimant, so that nobody else gets the number if D1 is restored to before the claim; and that D1 has the
   * number. May be repeated.
   */
  noteClaim(holder: HolderKey, number: number, claimant: HolderKey): void {
    this.#sql.exec(
      "UPDATE lease SET claimed_by = ?, confirmed = 1 WHERE holder = ? AND number = ? AND claimed_by IS NULL",
      claimant,
      holder,
      number,
    );
  }

  /**
   * Ends a holder's lease and frees its number. May be repeated. Does nothing if the holder has a different number by now,
   * because badges were adopted from D1, or if the number was claimed: D1 was restored to before the claim, and the
   * invitation then ended unclaimed.
   *
   * @param number null: whichever number the holder has
   * @param freedAt milliseconds; in the past if an invitation's end is noticed late
   * @returns whether a number was freed
   */
  release(holder: HolderKey, number: number | null, freedAt: number): boolean {
    const released = this.#first(
      "DELETE FROM lease WHERE holder = ?1 AND number = coalesce(?2, number) AND claimed_by IS NULL RETURNING number",
      holder,
      number,
    );
    if (!released) return false;
    this.#freed.add(integer(released.number), freedAt);
    return true;
  }

  /** The same for a lease that its holder no longer needs, unless it was ever confirmed: D1 may have been restored since. */
  releaseUnconfirmed(holder: HolderKey, number: number, freedAt: number): void {
    const query = `SELECT 1 FROM lease WHERE holder = ? AND number = ? AND ${IS_UNCONFIRMED}`;
    const open = this.#first(query, holder, number);
    if (open) this.release(holder, number, freedAt);
  }

  /**
   * Records that the badge of this lease was revoked, so that `reconcile` can repeat it. Repeated, it does nothing.
   *
   * @returns whether that was new
   */
  noteRevocation(holder: HolderKey, number: number, revokedAt: number): boolean {
    const note = "UPDATE lease SET revoked_at = ? WHERE holder = ? AND number = ? AND revoked_at IS NULL RETURNING id";
    return this.#first(note, revokedAt, holder, number) !== undefined;
  }

  isRevoked(holder: HolderKey, number: number): boolean {
    const query = "SELECT 1 FROM lease WHERE holder = ? AND number = ? AND revoked_at IS NOT NULL";
    return this.#first(query, holder, number) !== undefined;
  }

  /** Ends a lease of a number that has another owner in D1. The number is not freed: it is never leased again. */
  markTaken(holder: HolderKey, number: number): void {
    this.#sql.exec("DELETE FROM lease WHERE holder = ? AND number = ?", holder, number);
  }

  /** Unconfirmed leases that were not requested since `before` (milliseconds), oldest first. */
  unconfirmed(before: number, limit: number): UnconfirmedLease[] {
    return this.#sql
      .exec(
        `SELECT id, holder, number FROM lease
         WHERE id > (SELECT scanned_through FROM reclaim) AND ${IS_UNCONFIRMED} AND leased_at <= ? ORDER BY id LIMIT ?`,
        before,
        limit,
      )
      .toArray()
      .map((row) => ({ id: integer(row.id), holder: holderKeySchema.parse(row.holder), number: integer(row.number) }));
  }

  /** When the oldest unconfirmed lease was last requested, in milliseconds; null when all are confirmed. */
  oldestUnconfirmed(): number | null {
    const oldest = this.#first(
      `SELECT min(leased_at) AS leased_at FROM lease
       WHERE id > (SELECT scanned_through FROM reclaim) AND ${IS_UNCONFIRMED}`,
    );
    return oldest?.leased_at == null ? null : integer(oldest.leased_at);
  }

  /** Ends a lease and frees its number, unless it was confirmed or requested since it was read. */
  reclaim(id: number, before: number, now: number): boolean {
    const reclaimed = this.#first(
      `DELETE FROM lease WHERE id = ? AND ${IS_UNCONFIRMED} AND leased_at <= ? RETURNING number`,
      id,
      before,
    );
    if (!reclaimed) return false;
    this.#freed.add(integer(reclaimed.number), now);
    return true;
  }

  /**
   * Moves the start of the next scan to the first unconfirmed lease, so that confirmed leases are not read again.
   *
   * @returns whether any lease is still unconfirmed
   */
  finishScan(): boolean {
    const open = this.#first(
      `SELECT min(id) AS id FROM lease WHERE id > (SELECT scanned_through FROM reclaim) AND ${IS_UNCONFIRMED}`,
    );
    if (open?.id != null) {
      this.#sql.exec("UPDATE reclaim SET scanned_through = ?", integer(open.id) - 1);
      return true;
    }
    this.#sql.exec("UPDATE reclaim SET scanned_through = coalesce((SELECT max(id) FROM lease), 0)");
    return false;
  }

  /** A random sample of the freed numbers that can be leased now, without leasing them. */
  sampleReady(count: number): number[] {
    return this.#freed.sample(count);
  }

  /** The next fresh numbers, without leasing them. */
  peekFresh(count: number): number[] {
    return this.#fresh.peek(count);
  }

  /** Skips numbers that D1 already has, because this object was restored to an older state. */
  skipTaken(taken: ReadonlySet<number>): void {
    this.#freed.remove(taken);
    this.#fresh.skip(taken);
  }

  #first(query: string, ...bindings: SqlStorageValue[]): Row | undefined {
    return firstRow(this.#sql, query, ...bindings);
  }
}
