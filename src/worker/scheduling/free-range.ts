import { DEFAULT_RANGE_SIZE, FIRST_DEFAULT_NUMBER, MAX_DEFAULT_NUMBER } from "../../shared/limits/request-limits.ts";
import type { NumberRange } from "../../shared/number-range.ts";
import type { Registration } from "../../shared/script-commands.ts";

/** A registration that overlaps these numbers. */
export const findOwner = (
  registrations: readonly Registration[],
  { first, last }: NumberRange,
): Registration | undefined =>
  registrations.find(({ firstNumber, lastNumber }) => firstNumber <= last && lastNumber >= first);

/** The lowest free block of the default size (contract section 1); null if there is none. Blocks begin at multiples of that size. */
export function lowestFreeBlock(registrations: readonly Registration[]): NumberRange | null {
  let first = FIRST_DEFAULT_NUMBER;
  for (const { firstNumber, lastNumber } of registrations.toSorted(
    (one, other) => one.firstNumber - other.firstNumber,
  )) {
    if (firstNumber >= first + DEFAULT_RANGE_SIZE) break;
    const blocks = Math.ceil((lastNumber + 1 - FIRST_DEFAULT_NUMBER) / DEFAULT_RANGE_SIZE);
    first = Math.max(first, FIRST_DEFAULT_NUMBER + blocks * DEFAULT_RANGE_SIZE);
  }
  const last = first + DEFAULT_RANGE_SIZE - 1;
  return last <= MAX_DEFAULT_NUMBER ? { first, last } : null;
}
