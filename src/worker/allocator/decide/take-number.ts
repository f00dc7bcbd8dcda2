import { FREED_CHUNK_NUMBERS } from "../../../shared/limits/allocator-limits.ts";
import type { NumberRange } from "../../../shared/number-range.ts";
import type { RangeSegment } from "../../../shared/schema.ts";
import { HOUR_MILLISECONDS } from "../../../shared/time.ts";
import type { Result, Rules, SkipCommand } from "../commands.ts";
import type { Transaction } from "../transaction.ts";
import { expireInvitations } from "./end-invitation.ts";

/**
 * Which number is handed out next (contract section 5): a fresh one; when there is none, one of the freed numbers whose reuse
 * delay has passed, at random, so that nobody who reserves and revokes numbers chooses what a stranger gets.
 */
export function takeNumber(transaction: Transaction, rules: Rules): number | null {
  return takeFresh(transaction, rules.range) ?? takeFreed(transaction, rules);
}

/**
 * The segments with one more if the range has grown at its end. The segments before it keep their order, so no number comes twice. A
 * caller that still knows the shorter range changes nothing.
 */
function cover(segments: readonly RangeSegment[], { first, last }: NumberRange): RangeSegment[] {
  const end = segments.reduce((end, segment) => Math.max(end, segment.first + segment.size - 1), first - 1);
  return last > end ? [...segments, { first: end + 1, size: last - end, used: 0 }] : [...segments];
}

function takeFresh({ counters, sources }: Transaction, range: NumberRange): number | null {
  counters.rangeSegments = cover(counters.rangeSegments, range);
  const segment = counters.rangeSegments.find(({ size, used }) => used < size);
  return segment && sources.numberAt ? sources.numberAt(segment, segment.used++) : null;
}

function takeFreed(transaction: Transaction, { reuseAfterSeconds }: Rules): number | null {
  const { tables, now, sources } = transaction;
  expireInvitations(transaction, FREED_CHUNK_NUMBERS);
  // Without a delay every freed number is ready, even one that was freed by a clock ahead of this one.
  const freedUntil = reuseAfterSeconds === 0 ? Number.MAX_SAFE_INTEGER : now - reuseAfterSeconds * 1000;
  const ready = tables.freedNumbers(freedUntil, FREED_CHUNK_NUMBERS);
  const drawn = ready[sources.randomBelow(Math.max(1, ready.length))];
  if (!drawn) return null;
  transaction.deleteFreed(drawn);
  return drawn.number;
}

/**
 * Takes a number for a new badge or an invitation without the secret. `--new-badges-per-hour` limits these per clock hour
 * (contract section 7).
 *
 * @returns why there is none
 */
export function takeLimitedNumber(
  transaction: Transaction,
  rules: Rules,
): number | "RATE_LIMITED" | "NUMBERS_EXHAUSTED" {
  if (rules.newBadgesPerHour === null) return takeNumber(transaction, rules) ?? "NUMBERS_EXHAUSTED";
  const { counters, now } = transaction;
  const hour = Math.floor(now / HOUR_MILLISECONDS);
  const used = counters.hour === hour ? counters.hourUsed : 0;
  if (used >= rules.newBadgesPerHour) return "RATE_LIMITED";
  const number = takeNumber(transaction, rules);
  if (number === null) return "NUMBERS_EXHAUSTED";
  counters.hour = hour;
  counters.hourUsed = used + 1;
  return number;
}

/**
 * Leaves out fresh numbers that an allocator may have issued before it lost its storage (contract section 21). D1 may have been
 * restored to before any number of the range, or of its last segment, was drawn.
 */
export function skipNumbers(transaction: Transaction, { numbers, range, found }: SkipCommand): Result {
  let left = numbers;
  const rangeSegments = cover(transaction.counters.rangeSegments, range).map((segment) => {
    const skipped = Math.min(left, segment.size - segment.used);
    left -= skipped;
    return { ...segment, used: segment.used + skipped };
  });
  // The range has no more ordinals. A badge may have any number of changes.
  transaction.skip(rangeSegments, { ordinals: Math.min(numbers, range.last - range.first + 1), changes: numbers });
  return { ...found, skipped: numbers - left };
}
