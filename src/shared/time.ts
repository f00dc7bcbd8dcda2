export const HOUR_MILLISECONDS = 3600 * 1000;
export const DAY_MILLISECONDS = 24 * HOUR_MILLISECONDS;

/** A time in milliseconds as ISO 8601, UTC with milliseconds; null stays null. */
export function isoTime(milliseconds: number): string;
export function isoTime(milliseconds: number | null): string | null;
export function isoTime(milliseconds: number | null): string | null {
  return milliseconds === null ? null : new Date(milliseconds).toISOString();
}

/**
 * Whether something happened less than so many milliseconds ago. Age counts in both directions, so that a clock that jumped back
 * keeps nothing for ever.
 *
 * @param since null or undefined: it never happened
 */
export const happenedWithin = (since: number | null | undefined, now: number, milliseconds: number): boolean =>
  since != null && Math.abs(now - since) < milliseconds;
