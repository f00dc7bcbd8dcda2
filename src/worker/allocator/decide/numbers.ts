import { FREED_CHUNK_NUMBERS } from "../../../shared/limits.ts";
import type { NumberRange } from "../../../shared/number-range.ts";
import type { RangePart } from "../../../shared/schema.ts";
import { HOUR_MILLISECONDS } from "../../../shared/time.ts";
import type { Result, Rules } from "../commands.ts";
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
 * The parts with one more if the range has grown at its end. The parts before it keep their order, so no number comes twice. A
 * caller that still knows the shorter range changes nothing.
 */
function cover(parts: readonly RangePart[], { first, last }: NumberRange): RangePart[] {
  const end = parts.reduce((end, part) => Math.max(end, part.first + part.size - 1), first - 1);
  return last > end ? [...parts, { first: end + 1, size: last - end, used: 0 }] : [...parts];
}

function takeFresh({ counters, sources }: Transaction, range: NumberRange): number | null {
  counters.fresh = cover(counters.fresh, range);
  const part = counters.fresh.find(({ size, used }) => used < size);
  return part && sources.numberAt ? sources.numberAt(part, part.used++) : null;
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
 * Takes a number for a call without the secret, of which `--new-badges-per-hour` allows so many in a clock hour (contract section
 * 7).
 *
 * @returns why there is none
 */
export function takeLimitedNumber(
  transaction: Transaction,
  rules: Rules,
): number | "RATE_LIMITED" | "NUMBERS_EXHAUSTED" {
  const { counters, now } = transaction;
  const hour = Math.floor(now / HOUR_MILLISECONDS);
  const used = counters.hour === hour ? counters.hourUsed : 0;
  if (rules.newBadgesPerHour !== null && used >= rules.newBadgesPerHour) return "RATE_LIMITED";
  const number = takeNumber(transaction, rules);
  if (number === null) return "NUMBERS_EXHAUSTED";
  counters.hour = hour;
  counters.hourUsed = used + 1;
  return number;
}

/** Leaves out fresh numbers that an allocator may have issued before it lost its storage (contract section 21). */
export function skipNumbers(transaction: Transaction, numbers: number): Result {
  let left = numbers;
  const fresh = transaction.counters.fresh.map((part) => {
    const skipped = Math.min(left, part.size - part.used);
    left -= skipped;
    return { ...part, used: part.used + skipped };
  });
  transaction.skip(fresh, numbers);
  return { kind: "skipped", numbers: numbers - left };
}
