/** A time from a pasted list. */
export type ListTime = { ok: true; at: Date } | { ok: false; why: string };

const CLOCK = String.raw`(?<hour>\d{1,2})(?:[:.](?<minute>\d{2})(?::\d{2})?)?\s*(?<half>[ap]\.?m\.?)?(?:\s*uhr)?`;
const DAYS = [
  String.raw`(?<year>\d{4})-(?<month>\d{1,2})-(?<day>\d{1,2})`,
  String.raw`(?<day>\d{1,2})\.\s?(?<month>\d{1,2})\.\s?(?<year>\d{4})`,
];
/** A day with or without a clock time, or a clock time alone. There is no zone: times are in the user's. */
const FORMS = [...DAYS.map((day) => `${day}(?:[T,\\s]+${CLOCK})?`), CLOCK].map((form) => new RegExp(`^${form}$`, "i"));
const SLASHES = /^\d{1,2}\/\d{1,2}\/\d{2,4}/;

/**
 * Reads a time as people write it in a list, in the user's zone: `2027-01-15 8:00`, `15.01.2027 08:00`, `8:00`, `2 pm`.
 *
 * @param day the day of a clock time alone
 * @param isEnd whether a day alone means its end instead of its beginning
 */
export function readListTime(text: string, day: Date, isEnd: boolean): ListTime {
  const written = text.trim();
  if (SLASHES.test(written)) return { ok: false, why: `“${written}” can mean two days: write it as 2027-01-31 8:00.` };
  const found = FORMS.map((form) => form.exec(written)?.groups).find((groups) => groups !== undefined);
  if (found === undefined) return { ok: false, why: `“${written}” is not a time, such as 2027-01-31 8:00 or 8:00.` };
  const { year, month, hour, minute = "0", half } = found;
  const [y, m, d] =
    year === undefined
      ? [day.getFullYear(), day.getMonth(), day.getDate()]
      : [Number(year), Number(month) - 1, Number(found.day)];
  const hours = hour === undefined ? (isEnd ? 24 : 0) : hourOf(Number(hour), half);
  const at = new Date(y, m, d, hours, Number(minute));
  // JavaScript turns an invalid date, such as 31 February, into another one.
  const isReal = new Date(y, m, d).getMonth() === m && Number(minute) < 60 && hours * 60 + Number(minute) <= 24 * 60;
  return isReal ? { ok: true, at } : { ok: false, why: `There is no such time as “${written}”.` };
}

/** @param half `am` or `pm` */
function hourOf(hour: number, half: string | undefined): number {
  if (half === undefined) return hour;
  if (hour < 1 || hour > 12) return Number.NaN;
  return (hour % 12) + (half.toLowerCase().startsWith("p") ? 12 : 0);
}
