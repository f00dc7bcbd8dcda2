import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { createTables } from "./ledger-tables.ts";
import { createPermutation, PERMUTATION_KEY_BYTES } from "./permutation.ts";

/** A number range, both ends included. */
export interface NumberRange {
  first: number;
  last: number;
}

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
  readonly #permutations = new Map<number, (index: number) => number>();
  #permutationKey: Uint8Array | undefined;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    createTables(sql);
  }

  /**
   * The holder's number: the one it has, else the longest-free one past the reuse delay, else a fresh one. A number
   * that was leased is handed out again only after `release`.
   *
   * @param now milliseconds
   */
  lease(holder: string, range: NumberRange, reuseAfterSeconds: number, now: number): Lease {
    const held = this.#first("SELECT number, confirmed FROM lease WHERE holder = ?", holder);
    if (held) {
      // An hour counts from the last try, so that reclaiming never meets a request under way.
      if (held.confirmed === 0) this.#sql.exec("UPDATE lease SET leased_at = ? WHERE holder = ?", now, holder);
      return { kind: "leased", number: integer(held.number) };
    }
    const number = this.#takeFree(reuseAfterSeconds, now) ?? this.#takeFresh(range);
    if (number === null) return { kind: "exhausted" };
    this.#sql.exec("INSERT INTO lease (holder, number, leased_at, confirmed) VALUES (?, ?, ?, 0)", holder, number, now);
    return { kind: "leased", number };
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

  /** Notes who claimed: should D1 forget it, nobody else gets the number. Repeated, it does nothing. */
  noteClaim(holder: string, number: number, claimant: string): void {
    this.#sql.exec(
      "UPDATE lease SET claimed_by = ? WHERE holder = ? AND number = ? AND claimed_by IS NULL",
      claimant,
      holder,
      number,
    );
  }

  /**
   * Ends a lease; its number joins the free ones, in line by the time it was freed. Repeated, it does nothing. Nor does it
   * when the number was claimed: D1 was restored to before that, and now says that the invitation ended unclaimed.
   *
   * @param freedAt milliseconds; it may lie back, when an invitation's end is noticed late
   */
  release(holder: string, freedAt: number): boolean {
    const released = this.#first("DELETE FROM lease WHERE holder = ? AND claimed_by IS NULL RETURNING number", holder);
    if (!released) return false;
    this.#free(integer(released.number), freedAt);
    return true;
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

  /** Releases a lease only if it is still unconfirmed and still as old: a request may have come meanwhile. */
  reclaim(id: number, before: number, now: number): boolean {
    const reclaimed = this.#first(
      "DELETE FROM lease WHERE id = ? AND confirmed = 0 AND leased_at <= ? RETURNING number",
      id,
      before,
    );
    if (!reclaimed) return false;
    this.#free(integer(reclaimed.number), now);
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

  /** The longest-free numbers, rested or not, without leasing them. */
  peekFree(count: number): number[] {
    const rows = this.#sql.exec("SELECT number FROM free ORDER BY freed_at, id LIMIT ?", count).toArray();
    return rows.map(({ number }) => integer(number));
  }

  /** The next fresh numbers, without leasing them. */
  peekFresh(count: number): number[] {
    const segment = this.#openSegment();
    if (!segment) return [];
    const place = this.#permutation(segment);
    const last = Math.min(segment.size, segment.used + count);
    return Array.from({ length: last - segment.used }, (_, ahead) => segment.first + place(segment.used + ahead));
  }

  /** Passes over those of the numbers that come next that D1 knows: this object was restored to an older state. */
  skipTaken(taken: ReadonlySet<number>): void {
    const list = JSON.stringify([...taken]);
    this.#sql.exec("DELETE FROM free WHERE number IN (SELECT value FROM json_each(?))", list);
    const segment = this.#openSegment();
    if (!segment) return;
    const place = this.#permutation(segment);
    let index = segment.used;
    while (index < segment.size && taken.has(segment.first + place(index))) index++;
    this.#use(segment, index - segment.used);
  }

  #takeFree(reuseAfterSeconds: number, now: number): number | null {
    const free = this.#first("SELECT id, number, freed_at FROM free ORDER BY freed_at, id LIMIT 1");
    if (!free) return null;
    // Without a delay the clock is not asked: it may have jumped back since the number was freed.
    if (reuseAfterSeconds > 0) {
      const freedAt = integer(free.freed_at);
      // It did: the delay counts anew from now, or a moment of a wrong clock would hold numbers back for years.
      if (freedAt > now) this.#sql.exec("UPDATE free SET freed_at = ? WHERE freed_at > ?", now, now);
      if (freedAt > now - reuseAfterSeconds * 1000) return null;
    }
    this.#sql.exec("DELETE FROM free WHERE id = ?", integer(free.id));
    return integer(free.number);
  }

  #takeFresh(range: NumberRange): number | null {
    this.#cover(range);
    const segment = this.#openSegment();
    if (!segment) return null;
    this.#use(segment, 1);
    return segment.first + this.#permutation(segment)(segment.used);
  }

  /**
   * A range that grew at its end gets a further segment with an order of its own; the numbers before it keep theirs, so
   * none comes twice. A caller that knows only the shorter range changes nothing.
   */
  #cover({ first, last }: NumberRange): void {
    const known = this.#first("SELECT min(first) AS first, max(first + size - 1) AS last FROM segment");
    const end = known?.last == null ? first - 1 : integer(known.last);
    if (known?.first != null && integer(known.first) !== first) throw new Error("the number range has another start");
    if (last > end) this.#sql.exec("INSERT INTO segment (first, size, used) VALUES (?, ?, 0)", end + 1, last - end);
  }

  #openSegment(): Segment | null {
    const row = this.#first("SELECT first, size, used FROM segment WHERE used < size ORDER BY first LIMIT 1");
    return row ? { first: integer(row.first), size: integer(row.size), used: integer(row.used) } : null;
  }

  #use(segment: Segment, count: number): void {
    this.#sql.exec("UPDATE segment SET used = used + ? WHERE first = ?", count, segment.first);
  }

  /** Made once for each segment, of which neither place nor size ever changes. */
  #permutation({ first, size }: Segment): (index: number) => number {
    const known = this.#permutations.get(first);
    if (known) return known;
    this.#permutationKey ??= this.#loadPermutationKey();
    // A key of its own for each segment: two of one size must not have one order.
    const key = hmac(sha256, this.#permutationKey, new TextEncoder().encode(String(first)));
    const permutation = createPermutation(key, size);
    this.#permutations.set(first, permutation);
    return permutation;
  }

  /** The application's key, made by whoever comes first. */
  #loadPermutationKey(): Uint8Array {
    const made = crypto.getRandomValues(new Uint8Array(PERMUTATION_KEY_BYTES));
    this.#sql.exec("INSERT OR IGNORE INTO permutation_key (id, key) VALUES (1, ?)", made);
    const kept = this.#first("SELECT key FROM permutation_key")?.key;
    if (!(kept instanceof ArrayBuffer)) throw new Error("the permutation key is not bytes");
    return new Uint8Array(kept);
  }

  #free(number: number, freedAt: number): void {
    this.#sql.exec("INSERT OR IGNORE INTO free (number, freed_at) VALUES (?, ?)", number, freedAt);
  }

  #first(query: string, ...bindings: SqlStorageValue[]): Record<string, SqlStorageValue> | undefined {
    return this.#sql.exec(query, ...bindings).toArray()[0];
  }
}

interface Segment {
  first: number;
  size: number;
  used: number;
}

function integer(value: SqlStorageValue | undefined): number {
  if (typeof value !== "number") throw new TypeError("expected an integer from the object's storage");
  return value;
}
