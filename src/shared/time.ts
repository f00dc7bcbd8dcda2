export const HOUR_MILLISECONDS = 3600 * 1000;
export const DAY_MILLISECONDS = 24 * HOUR_MILLISECONDS;

/** A time in milliseconds as ISO 8601, UTC with milliseconds; null stays null. */
export function isoTime(milliseconds: number): string;
export function isoTime(milliseconds: number | null): string | null;
export function isoTime(milliseconds: number | null): string | null {
  return milliseconds === null ? null : new Date(milliseconds).toISOString();
}

/**
 * Whether a time is less than `milliseconds` ago. The age is absolute, so that a clock set back pins nothing.
 *
 * @param since null or undefined if it never happened
 */
export const happenedWithin = (since: number | null | undefined, now: number, milliseconds: number): boolean =>
  since != null && Math.abs(now - since) < milliseconds;
