import type { ComponentChildren } from "preact";

/** Formats values: numbers in groups, times in the user's zone. */

const counts = new Intl.NumberFormat();

/** A count with the separators of the user's locale. */
export const count = (number: number): string => counts.format(number);

/** `1 badge`, `2 badges`. */
export const counted = (number: number, noun: string, plural = `${noun}s`): string =>
  `${count(number)} ${number === 1 ? noun : plural}`;

/** A badge number in groups of three with narrow no-break spaces, for a sentence. */
export const grouped = (number: string): string => number.replaceAll(/\B(?=(\d{3})+$)/g, "\u202f");

/** A badge number in groups of three. CSS draws the gaps, so a copied number has none. */
export function Digits({ value }: { value: string | number }) {
  const groups = String(value).match(/\d{1,3}(?=(\d{3})*$)/g) ?? [];
  return (
    <span class="digits">
      {groups.map((group, place) => (
        <span key={place}>{group}</span>
      ))}
    </span>
  );
}

const short = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

/** A time in the user's zone, for a sentence. */
export const shortTime = (at: string): string => short.format(new Date(at));

const zoned = new Intl.DateTimeFormat(undefined, {
  ...{ year: "numeric", month: "short", day: "numeric" },
  ...{ hour: "numeric", minute: "2-digit", timeZoneName: "short" },
});

/** A time with its zone, for a visitor, who may be in another one. */
export const zonedTime = (at: string): string => zoned.format(new Date(at));

/** The zone in which times are entered and shown. */
export const YOUR_TIME_ZONE = `your time zone, ${full.resolvedOptions().timeZone}`;

/** A time in the user's zone; the tooltip has it in full. */
export function When({ at }: { at: string }) {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return <span>{at}</span>;
  return (
    <time class="when" dateTime={at} title={full.format(time)}>
      {short.format(time)}
    </time>
  );
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

/** When something happened: `at 17:34` today, else with the day. */
export function momentOf(at: string): string {
  const time = new Date(at);
  return time.toDateString() === new Date().toDateString() ? `at ${clock.format(time)}` : `on ${short.format(time)}`;
}

/** So many calendar days ahead, in the browser's zone: a day on which clocks change has 23 or 25 hours. */
export const atHour = (now: Date, daysAhead: number, hour: number): Date =>
  new Date(now.getFullYear(), now.getMonth(), now.getDate() + daysAhead, hour);

/** The value of an `<input type="datetime-local">` for a time, in the user's zone. */
export function localInputValue(time: Date): string {
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

export function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="field">
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export type Tone = "good" | "waiting" | "bad" | "over";

/** A state in words, repeated by the colour. */
export function Chip({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`chip chip-${tone}`}>{children}</span>;
}
