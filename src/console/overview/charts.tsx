import { count, counted, YOUR_TIME_ZONE } from "../parts/texts.tsx";

/** Charts by Charts.css: each is a table, so screen readers and the keyboard get the numbers that the bars draw. */

export interface Bar {
  label: string;
  count: number;
  /** The list of what it counts, if there is one. */
  href?: string;
}

const LEAST_SHARE = 0.01;

/** The length of a bar as a fraction of the longest. Any count but zero is visible. */
const share = (number: number, most: number): string => String(number === 0 ? 0 : Math.max(LEAST_SHARE, number / most));

/** A bar for each value, in the given order. */
export function Bars(props: { title: string; unit: string; bars: readonly Bar[]; empty?: string | undefined }) {
  const { title, unit, bars, empty = "Nothing to count yet." } = props;
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  const hasAny = bars.some((bar) => bar.count > 0);
  return (
    <section class="panel">
      <h2>{title}</h2>
      {hasAny ? (
        <table class="charts-css bar show-labels value-bars" aria-label={title}>
          <thead>
            <tr>
              <th scope="col">Value</th>
              <th scope="col">{unit}</th>
            </tr>
          </thead>
          <tbody>
            {bars.map((bar) => (
              <tr key={bar.label}>
                <th scope="row" title={bar.label}>
                  {bar.href === undefined ? bar.label : <a href={bar.href}>{bar.label}</a>}
                </th>
                <td style={{ "--size": share(bar.count, most) }}>
                  <span class="data">{count(bar.count)}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p class="hint">{empty}</p>
      )}
    </section>
  );
}

const dayName = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const nameOf = (day: string): string => dayName.format(new Date(`${day}T00:00:00Z`));

/** When a UTC day begins in the user's zone, unless at midnight. */
function localMidnight(day: string): string {
  const start = new Date(`${day}T00:00:00Z`);
  return start.getTimezoneOffset() === 0 ? "" : ` and begin at ${clock.format(start)} (${YOUR_TIME_ZONE})`;
}

/** New badges on each day, oldest first. Days are in UTC, as the service counts them. */
export function DayColumns({ days }: { days: readonly { day: string; badges: number }[] }) {
  const most = Math.max(0, ...days.map(({ badges }) => badges));
  const total = days.reduce((sum, { badges }) => sum + badges, 0);
  const busiest = days.find(({ badges }) => badges === most && most > 0);
  const [first, last] = [days[0], days.at(-1)];
  return (
    <section class="panel panel-wide">
      <h2>New badges per day</h2>
      <p class="hint">
        {counted(total, "badge")} in {days.length} days
        {busiest && `, most on ${nameOf(busiest.day)}: ${count(busiest.badges)}`}.
        {last && ` Days are in UTC${localMidnight(last.day)}.`}
      </p>
      <table class="charts-css column show-primary-axis day-columns" aria-label="New badges per day">
        <thead>
          <tr>
            <th scope="col">Day</th>
            <th scope="col">badges</th>
          </tr>
        </thead>
        <tbody>
          {days.map(({ day, badges }) => (
            <tr key={day}>
              <th scope="row">{nameOf(day)}</th>
              <td style={{ "--size": share(badges, most) }} title={`${nameOf(day)}: ${count(badges)}`}>
                <span class="data">{count(badges)}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {first && last && (
        <p class="axis" aria-hidden="true">
          <span>{nameOf(first.day)}</span>
          <span>{nameOf(last.day)}</span>
        </p>
      )}
    </section>
  );
}
