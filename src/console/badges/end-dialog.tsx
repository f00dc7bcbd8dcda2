import { useState } from "preact/hooks";
import type { Badge } from "../../client/index.ts";
import { Ask } from "../parts/ask.tsx";
import type { Notice } from "../parts/notice.tsx";
import { grouped, localInputValue, YOUR_TIME_ZONE } from "../parts/texts.tsx";

const DAY_MILLISECONDS = 24 * 3600 * 1000;

/** Asks when a badge is to end. */
export function EndDialog(props: { badge: Badge; act: (end: Date | null) => Promise<Notice>; onClose: () => void }) {
  const { badge, act, onClose } = props;
  const [hasEnd, setHasEnd] = useState(true);
  const [end, setEnd] = useState(() => localInputValue(new Date(badge.expiresAt ?? Date.now() + DAY_MILLISECONDS)));
  const isPast = hasEnd && new Date(end).getTime() <= Date.now();
  return (
    <Ask
      title={`When does badge ${grouped(badge.id)} end?`}
      action={isPast ? "End badge now" : "Set end"}
      act={() => act(hasEnd ? new Date(end) : null)}
      onClose={onClose}
    >
      <fieldset>
        <legend>End of the badge</legend>
        <label class="choice">
          <input type="radio" name="end" checked={hasEnd} onChange={() => setHasEnd(true)} />
          At a time
        </label>
        <label>
          Date and time ({YOUR_TIME_ZONE})
          <input
            type="datetime-local"
            required={hasEnd}
            disabled={!hasEnd}
            value={end}
            onInput={(event) => setEnd(event.currentTarget.value)}
          />
        </label>
        <label class="choice">
          <input type="radio" name="end" checked={!hasEnd} onChange={() => setHasEnd(false)} />
          No end
        </label>
      </fieldset>
      <p>
        {isPast
          ? `That time has passed, so the phone of ${badge.userId} is refused at once.`
          : `From that time on the phone of ${badge.userId} is refused.`}{" "}
        You can undo this: a later end makes the badge usable again.
      </p>
    </Ask>
  );
}
