import { BEYOND_CHUNK_NUMBERS } from "../../../shared/limits.ts";
import type { NumberRange } from "../../../shared/number-range.ts";
import { HOUR_MILLISECONDS } from "../../../shared/time.ts";
import type { FreedRow, RangePart } from "../../storage/rows.ts";
import type { Command, Rules } from "../commands.ts";
import type { Draft } from "./draft.ts";

/**
 * Which number is handed out next (contract section 5): a fresh one; when there is none, one of the freed numbers that have
 * rested, at random, so that nobody who reserves and revokes numbers chooses what a stranger gets.
 */
export function takeNumber(draft: Draft, rules: Rules): number | null {
  return takeFresh(draft, rules.range) ?? takeFreed(draft, rules);
}

/** How many numbers of the range were never used: a lower bound where a part reaches beyond it. */
export function countFresh(parts: readonly RangePart[], range: NumberRange): number {
  const inRange = ({ first, size }: RangePart) => Math.min(size, range.last - first + 1);
  return cover(parts, range).reduce((sum, part) => sum + Math.max(0, inRange(part) - part.used), 0);
}

/** How many numbers a command may take. */
export function countWanted(command: Command): number {
  if (command.kind === "invite") return command.invitations.length;
  return command.kind === "badge" && command.invitation === null ? 1 : 0;
}

/** How many numbers there are for a command with these rules, of those that were read. */
export const countFree = (draft: Draft, rules: Rules): number =>
  countFresh(draft.position.fresh, rules.range) + restedNumbers(draft, rules).length;

/**
 * The parts with one more if the range has grown at its end. The parts before it keep their order, so no number comes twice. A
 * caller that still knows the shorter range changes nothing.
 */
function cover(parts: readonly RangePart[], { first, last }: NumberRange): RangePart[] {
  const end = parts.reduce((end, part) => Math.max(end, part.first + part.size - 1), first - 1);
  return last > end ? [...parts, { first: end + 1, size: last - end, used: 0 }] : [...parts];
}

/**
 * Numbers beyond the range are skipped for good. A part reaches beyond it if an administrator accepted a loss, or if it was begun
 * by a call that knew of the range's growth some seconds before this one's isolate does.
 */
function takeFresh(draft: Draft, range: NumberRange): number | null {
  draft.position.fresh = cover(draft.position.fresh, range);
  const { fresh } = draft.position;
  for (let step = 0; step < BEYOND_CHUNK_NUMBERS; step++) {
    const part = fresh.find(({ first, size, used }) => used < size && first <= range.last);
    if (!part) return null;
    const number = draft.sources.numberAt(part, part.used++);
    if (number <= range.last) return number;
  }
  return null;
}

function restedNumbers(draft: Draft, { range, reuseAfterSeconds }: Rules): FreedRow[] {
  const restedBefore = draft.now - reuseAfterSeconds * 1000;
  return [...draft.freed.values()].filter(
    ({ number, freedAt }) => number <= range.last && (reuseAfterSeconds === 0 || freedAt <= restedBefore),
  );
}

function takeFreed(draft: Draft, rules: Rules): number | null {
  const ready = restedNumbers(draft, rules);
  const drawn = ready[draft.sources.randomBelow(Math.max(1, ready.length))];
  if (!drawn) return null;
  draft.freed.delete(drawn.number);
  return drawn.number;
}

/** @param freedAt in the past if an invitation's end is noticed late */
export function freeNumber(draft: Draft, number: number, freedAt: number): void {
  draft.badges.delete(number);
  draft.freed.set(number, { number, freedAt });
}

/** Counts a fresh number for `--new-badges-per-hour`. @returns false if the hour's numbers are used up */
export function countNewBadge({ position, now }: Draft, { newBadgesPerHour }: Rules): boolean {
  if (newBadgesPerHour === null) return true;
  const age = now - position.hourStartedAt;
  if (age < 0 || age >= HOUR_MILLISECONDS) {
    position.hourStartedAt = now;
    position.hourUsed = 0;
  }
  if (position.hourUsed >= newBadgesPerHour) return false;
  position.hourUsed++;
  return true;
}
