import { useEffect, useId, useState } from "preact/hooks";
import type { Times } from "../badges/steps.ts";
import { atHour, localInputValue, YOUR_TIME_ZONE } from "./texts.tsx";

/** What the user has entered. */
export interface WantedTimes {
  read: () => Times;
}

/** Times that a receptionist often needs. Null for at once, or no end. */
interface Preset {
  label: string;
  from: Date | null;
  until: Date | null;
}

function presetsAt(now: Date): Preset[] {
  const evening = atHour(now, 0, 18);
  return [
    now < evening
      ? { label: "Today until 18:00", from: null, until: evening }
      : { label: "Today until midnight", from: null, until: atHour(now, 1, 0) },
    { label: "Tomorrow, 8:00 to 18:00", from: atHour(now, 1, 8), until: atHour(now, 1, 18) },
    { label: "For a week", from: null, until: atHour(now, 7, 18) },
    { label: "No end", from: null, until: null },
  ];
}

/** JavaScript would not parse a longer year. */
const LATEST = "9999-12-31T23:59";

const inputValue = (time: string | null): string => (time === null ? "" : localInputValue(new Date(time)));

/** What was entered. The field has no seconds, so an unchanged time is returned as it was. */
function timeOf(entered: string, before: string | null): string | null {
  if (entered === inputValue(before)) return before;
  return entered === "" ? null : new Date(entered).toISOString();
}

/**
 * Fields for start and end, with presets.
 *
 * @param times the initial values
 */
export function TimesFields(props: {
  times: Times;
  /** What an end in the past means. */
  pastHint?: string;
  /** Called on each change. */
  onWanted: (wanted: WantedTimes) => void;
}) {
  const { times, onWanted, pastHint = "That time has passed, so the badge ends at once." } = props;
  const id = useId();
  const [from, setFrom] = useState(() => inputValue(times.startsAt));
  const [until, setUntil] = useState(() => inputValue(times.expiresAt));
  useEffect(() => {
    onWanted({ read: () => ({ startsAt: timeOf(from, times.startsAt), expiresAt: timeOf(until, times.expiresAt) }) });
  }, [from, until]);
  const isPast = until !== "" && new Date(until).getTime() <= Date.now();
  const choose = ({ from: start, until: end }: Preset) => {
    setFrom(inputValue(start?.toISOString() ?? null));
    setUntil(inputValue(end?.toISOString() ?? null));
  };
  return (
    <fieldset class="times">
      <legend>
        From and until <span class="hint">({YOUR_TIME_ZONE})</span>
      </legend>
      <div class="presets">
        {presetsAt(new Date()).map((preset) => (
          <button key={preset.label} type="button" onClick={() => choose(preset)}>
            {preset.label}
          </button>
        ))}
      </div>
      <div class="time-pair">
        <label>
          From <span class="hint">(empty: at once)</span>
          <input
            type="datetime-local"
            value={from}
            max={until || LATEST}
            onInput={(event) => setFrom(event.currentTarget.value)}
          />
        </label>
        <label>
          Until <span class="hint">(empty: no end)</span>
          <input
            type="datetime-local"
            value={until}
            max={LATEST}
            aria-describedby={isPast ? id : undefined}
            onInput={(event) => setUntil(event.currentTarget.value)}
          />
        </label>
      </div>
      {isPast && (
        <p id={id} class="hint">
          {pastHint}
        </p>
      )}
    </fieldset>
  );
}
