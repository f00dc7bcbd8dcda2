import { useEffect, useRef } from "preact/hooks";
import type { InvitationState } from "../../client/index.ts";
import { DAYS, type Day, dateValue } from "../parts/days.ts";
import { useTextField } from "../parts/hooks.ts";
import { focusHeading } from "../parts/notice.tsx";
import { goTo, hrefOf, type Params } from "../parts/route.ts";
import { Filters } from "../parts/table.tsx";
import { INVITATION_STATE_WORDS } from "../words.ts";

export const STATES = ["pending", "claimed", "revoked", "expired"] as const;

/** Chooses which visits are listed: by day, state and visitor. The filter is in the address. */
export function VisitFilters(props: {
  params: Params;
  day: Day | null;
  state: InvitationState | undefined;
  counts: Readonly<Record<InvitationState, number>> | undefined;
}) {
  const { params, day, state, counts } = props;
  const chosen = params.day ?? "today";
  const href = (changed: Record<string, string | undefined>) => hrefOf("visitors", { ...params, ...changed });
  const dayField = useRef<HTMLInputElement>(null);
  const listedDay = day?.until === undefined ? "" : dateValue(day);
  // Not at every rendering: the list is read again while a day is typed.
  useEffect(() => {
    if (dayField.current) dayField.current.value = listedDay;
  }, [listedDay]);
  const input = useTextField(params.q ?? "");
  const search = (event: Event) => {
    event.preventDefault();
    const q = input.current?.value.trim() ?? "";
    // A search for a person covers all days from today on, because the day is often unknown.
    goTo("visitors", { ...params, q, day: q === "" || params.day === "all" ? params.day : "upcoming" });
  };
  return (
    <>
      <search>
        <form class="find" onSubmit={search}>
          <label>
            Search by name or user ID
            <input ref={input} type="search" minLength={2} maxLength={255} autocomplete="off" spellcheck={false} />
          </label>
          <button type="submit">Search</button>
          {params.q !== undefined && (
            <a href={href({ q: undefined, day: undefined })} onClick={focusHeading}>
              Clear the search
            </a>
          )}
        </form>
      </search>
      <div class="filter-line">
        <Filters
          label="Days"
          choices={[
            { title: "Today", href: href({ day: undefined }), isChosen: chosen === "today" },
            { title: "Tomorrow", href: href({ day: "tomorrow" }), isChosen: chosen === "tomorrow" },
            { title: "From today on", href: href({ day: "upcoming" }), isChosen: chosen === "upcoming" },
            { title: "All", href: href({ day: "all" }), isChosen: day === null },
          ]}
        />
        <label class="inline">
          A day
          <input
            ref={dayField}
            type="date"
            {...DAYS}
            // While it is typed, a day is incomplete or has a year such as 0002.
            onChange={({ currentTarget: { value, validity } }) =>
              validity.valid && goTo("visitors", { ...params, day: value || "all" })
            }
          />
        </label>
      </div>
      <Filters
        label="States"
        choices={[
          { title: "In any state", href: href({ state: undefined }), isChosen: state === undefined },
          ...STATES.map((each) => ({
            title: INVITATION_STATE_WORDS[each],
            href: href({ state: each }),
            isChosen: state === each,
            count: day === null && params.q === undefined ? counts?.[each] : undefined,
          })),
        ]}
      />
    </>
  );
}
