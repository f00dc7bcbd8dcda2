import { useEffect, useId, useState } from "preact/hooks";
import { atHour, localInputValue, YOUR_TIME_ZONE } from "./texts.tsx";

/** Days from now, ending at 18:00. */
const PRESETS = [
  ["For a week", 7],
  ["For 30 days", 30],
  ["For a year", 365],
] as const;

const inDays = (days: number): string => localInputValue(atHour(new Date(), days, 18));

/** One end for several badges. @param onUntil ISO 8601; null for no end */
export function UntilField({ onUntil }: { onUntil: (until: string | null) => void }) {
  const id = useId();
  const [until, setUntil] = useState(() => inDays(30));
  useEffect(() => onUntil(until === "" ? null : new Date(until).toISOString()), [until]);
  const isPast = until !== "" && new Date(until).getTime() <= Date.now();
  return (
    <fieldset class="times">
      <legend>
        New end <span class="hint">({YOUR_TIME_ZONE})</span>
      </legend>
      <div class="presets">
        {PRESETS.map(([label, days]) => (
          <button key={label} type="button" onClick={() => setUntil(inDays(days))}>
            {label}
          </button>
        ))}
        <button type="button" onClick={() => setUntil("")}>
          No end
        </button>
      </div>
      <label>
        Until <span class="hint">(empty: no end)</span>
        <input
          type="datetime-local"
          value={until}
          max="9999-12-31T23:59"
          aria-describedby={isPast ? id : undefined}
          onInput={(event) => setUntil(event.currentTarget.value)}
        />
      </label>
      {isPast && (
        <p id={id} class="hint">
          That time has passed, so the badges end at once.
        </p>
      )}
    </fieldset>
  );
}
