/**
 * Reads a `Retry-After` header (RFC 9110 section 10.2.3): a number of seconds or an HTTP-date.
 *
 * @returns whole seconds from now, not capped; 0 for a date in the past; null for a missing or malformed value
 */
export function parseRetryAfter(value: string | null, nowMilliseconds: number): number | null {
  const text = value?.trim() ?? "";
  if (/^[0-9]+$/.test(text)) return Number(text);
  const date = parseHttpDate(text, nowMilliseconds);
  return date === null ? null : Math.max(0, Math.ceil((date - nowMilliseconds) / 1000));
}

/** The three forms of RFC 9110 section 5.6.7: IMF-fixdate, and the obsolete ones of RFC 850 and of C's asctime. */
const HTTP_DATES = [
  /^[A-Z][a-z]{2}, (?<day>\d{2}) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) (?<time>\d{2}:\d{2}:\d{2}) GMT$/,
  /^[A-Z][a-z]{2,5}day, (?<day>\d{2})-(?<month>[A-Z][a-z]{2})-(?<year>\d{2}) (?<time>\d{2}:\d{2}:\d{2}) GMT$/,
  /^[A-Z][a-z]{2} (?<month>[A-Z][a-z]{2}) (?<day>[ \d]\d) (?<time>\d{2}:\d{2}:\d{2}) (?<year>\d{4})$/,
];

/** @returns milliseconds since 1970-01-01 UTC, or null */
function parseHttpDate(text: string, nowMilliseconds: number): number | null {
  for (const form of HTTP_DATES) {
    const { day = "", month = "", year = "", time = "" } = form.exec(text)?.groups ?? {};
    const fullYear = year.length === 2 ? centuryOf(Number(year), nowMilliseconds) : year;
    const canonical = `${day.replace(" ", "0")} ${month} ${fullYear} ${time} GMT`;
    const date = new Date(canonical);
    // `Date` turns 30 February into March; formatting the result reveals it.
    if (date.toUTCString().slice("Sun, ".length) === canonical) return date.getTime();
  }
  return null;
}

/** RFC 9110 section 5.6.7: a two-digit year that seems more than 50 years ahead is in the past. */
function centuryOf(twoDigitYear: number, nowMilliseconds: number): number {
  const thisYear = new Date(nowMilliseconds).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + twoDigitYear;
  return year > thisYear + 50 ? year - 100 : year;
}
