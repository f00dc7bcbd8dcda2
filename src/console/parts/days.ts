/** A day named in the address, in the user's time zone, or all days from one on. */
export interface Day {
  from: Date;
  /** Absent if it has no end. */
  until?: Date;
}

/** Of an `<input type="date">`: the days that the service accepts in every time zone. */
export const DAYS = { min: "1970-01-02", max: "9999-12-30" } as const;

const startOf = (now: Date, daysAhead: number): Date =>
  new Date(now.getFullYear(), now.getMonth(), now.getDate() + daysAhead);

/** @param text `yesterday`, `today`, `tomorrow`, `upcoming` (from today on) or `2027-01-31`. @returns null for anything else */
export function dayOf(text: string, now: Date): Day | null {
  if (text === "upcoming") return { from: startOf(now, 0) };
  if (text === "yesterday") return { from: startOf(now, -1), until: startOf(now, 0) };
  if (text === "today") return { from: startOf(now, 0), until: startOf(now, 1) };
  if (text === "tomorrow") return { from: startOf(now, 1), until: startOf(now, 2) };
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text) ?? [];
  const from = new Date(Number(year), Number(month) - 1, Number(day));
  // JavaScript turns 31 February into another day, and the year 20 into 1920.
  const isDay = dateValue({ from }) === text && text >= DAYS.min && text <= DAYS.max;
  return isDay ? { from, until: startOf(from, 1) } : null;
}

/** The value of an `<input type="date">`. */
export function dateValue({ from }: Day): string {
  const two = (number: number) => String(number).padStart(2, "0");
  return `${String(from.getFullYear()).padStart(4, "0")}-${two(from.getMonth() + 1)}-${two(from.getDate())}`;
}
