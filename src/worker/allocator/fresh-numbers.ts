import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { BEYOND_CHUNK_NUMBERS } from "../../shared/limits.ts";
import type { NumberRange } from "../../shared/number-range.ts";
import { createPermutation, PERMUTATION_KEY_BYTES } from "./permutation.ts";
import { firstRow, integer, type Row } from "./sql.ts";

/** A part of the range with its own order; the first `used` numbers in that order are taken. */
interface Segment {
  first: number;
  size: number;
  used: number;
}

/** The never-leased numbers of a range, in an unpredictable order, in the object's storage. */
export class FreshNumbers {
  readonly #sql: SqlStorage;
  readonly #permutations = new Map<number, (index: number) => number>();
  #permutationKey: Uint8Array | undefined;
  /** All numbers that have a segment. Segments are never removed, so the value stays valid. */
  #covered: NumberRange | undefined;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /**
   * The next number, or null when the range is used up. Segments may extend beyond the range: if D1 was restored to before
   * the range grew, the rest may belong to another application by now. Numbers beyond the range are passed to `setAside`, at
   * most `BEYOND_CHUNK_NUMBERS` per call, in case it grows again.
   */
  take(range: NumberRange, setAside: (number: number) => void): number | null {
    this.#cover(range);
    for (let step = 0; step < BEYOND_CHUNK_NUMBERS; step++) {
      const taken = firstRow(
        this.#sql,
        `UPDATE segment SET used = used + 1
         WHERE first = (SELECT first FROM segment WHERE used < size AND first <= ? ORDER BY first LIMIT 1)
         RETURNING first, size, used`,
        range.last,
      );
      if (!taken) return null;
      const segment = toSegment(taken);
      const number = segment.first + this.#permutation(segment)(segment.used - 1);
      if (number <= range.last) return number;
      setAside(number);
    }
    return null;
  }

  /** How many numbers of the range are left; an estimate while the range ends within a segment. */
  countLeft(range: NumberRange): number {
    this.#cover(range);
    return this.#sql
      .exec("SELECT first, size, used FROM segment WHERE first <= ?", range.last)
      .toArray()
      .map(toSegment)
      .map(({ first, size, used }) => {
        const covered = Math.min(size, range.last - first + 1);
        return covered === size ? size - used : Math.round((size - used) * (covered / size));
      })
      .reduce((sum, left) => sum + left, 0);
  }

  /** The next numbers of the current segment, without taking them. */
  peek(count: number): number[] {
    const segment = this.#openSegment();
    if (!segment) return [];
    const offsetAt = this.#permutation(segment);
    const last = Math.min(segment.size, segment.used + count);
    return Array.from({ length: last - segment.used }, (_, ahead) => segment.first + offsetAt(segment.used + ahead));
  }

  /** Skips the next numbers as long as they are in `taken`. */
  skip(taken: ReadonlySet<number>): void {
    const segment = this.#openSegment();
    if (!segment) return;
    const offsetAt = this.#permutation(segment);
    let index = segment.used;
    while (index < segment.size && taken.has(segment.first + offsetAt(index))) index++;
    this.#sql.exec("UPDATE segment SET used = ? WHERE first = ?", index, segment.first);
  }

  /**
   * Adds a segment when the range has grown at its end. The segments before it keep their order, so no number comes twice. A
   * caller that still knows the shorter range changes nothing.
   */
  #cover({ first, last }: NumberRange): void {
    if (first === this.#covered?.first && last <= this.#covered.last) return;
    const known = firstRow(this.#sql, "SELECT min(first) AS first, max(first + size - 1) AS last FROM segment");
    const end = known?.last == null ? first - 1 : integer(known.last);
    if (known?.first != null && integer(known.first) !== first)
      throw new Error("the number range starts at a different number");
    if (last > end) this.#sql.exec("INSERT INTO segment (first, size, used) VALUES (?, ?, 0)", end + 1, last - end);
    this.#covered = { first, last: Math.max(last, end) };
  }

  #openSegment(): Segment | null {
    const row = firstRow(this.#sql, "SELECT first, size, used FROM segment WHERE used < size ORDER BY first LIMIT 1");
    return row ? toSegment(row) : null;
  }

  /** Cached, since a segment's start and size never change. */
  #permutation({ first, size }: Segment): (index: number) => number {
    const known = this.#permutations.get(first);
    if (known) return known;
    this.#permutationKey ??= this.#loadPermutationKey();
    // One key per segment: segments of equal size must not have the same order.
    const key = hmac(sha256, this.#permutationKey, new TextEncoder().encode(String(first)));
    const permutation = createPermutation(key, size);
    this.#permutations.set(first, permutation);
    return permutation;
  }

  /** The application's key, generated on first use. */
  #loadPermutationKey(): Uint8Array {
    const made = crypto.getRandomValues(new Uint8Array(PERMUTATION_KEY_BYTES));
    this.#sql.exec("INSERT OR IGNORE INTO permutation_key (id, key) VALUES (1, ?)", made);
    const stored = firstRow(this.#sql, "SELECT key FROM permutation_key")?.key;
    if (!(stored instanceof ArrayBuffer)) throw new Error("the permutation key is not bytes");
    return new Uint8Array(stored);
  }
}

function toSegment({ first, size, used }: Row): Segment {
  return { first: integer(first), size: integer(size), used: integer(used) };
}
