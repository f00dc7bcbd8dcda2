import { useLayoutEffect, useRef } from "preact/hooks";
import { DAYS, dateValue, dayOf } from "../parts/days.ts";
import { focusHeading } from "../parts/notice.tsx";
import { goTo, hrefOf, type Params } from "../parts/route.ts";
import { Filters } from "../parts/table.tsx";
import { ACTION_WORDS } from "./action-names.ts";

const NAMES = ["from", "to", "actor", "action", "badge", "user"] as const;

/** Chooses which history entries are listed. */
export function HistoryFilters({ params }: { params: Params }) {
  const form = useRef<HTMLFormElement>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    if (form.current === null) return;
    const data = new FormData(form.current);
    const read = (name: string) => String(data.get(name) ?? "");
    goTo("history", {
      ...Object.fromEntries(NAMES.map((name) => [name, read(name)])),
      actor: read("actor").trim(),
      badge: read("badge").replaceAll(/\D/g, ""),
    });
  };
  const isNarrowed = NAMES.some((name) => params[name] !== undefined);
  const day = (name: string | undefined) => {
    const meant = name === undefined ? null : dayOf(name, new Date());
    return meant === null ? "" : dateValue(meant);
  };
  const ofDay = (title: string, name: string | undefined) => ({
    title,
    href: hrefOf("history", { ...params, from: name, to: name }),
    isChosen: day(params.from) === day(name) && day(params.to) === day(name),
  });
  // A key would make new fields, without the focus.
  useLayoutEffect(() => {
    for (const name of NAMES) {
      const field = form.current?.elements.namedItem(name);
      const value = name === "from" || name === "to" ? day(params[name]) : (params[name] ?? "");
      if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) field.value = value;
    }
  }, [JSON.stringify(params)]);
  return (
    <>
      <div class="filter-line">
        <Filters
          label="Days"
          choices={[ofDay("Any day", undefined), ofDay("Today", "today"), ofDay("Yesterday", "yesterday")]}
        />
      </div>
      <form ref={form} class="find history-filters" onSubmit={submit}>
        <label>
          From day
          <input type="date" name="from" {...DAYS} />
        </label>
        <label>
          To day
          <input type="date" name="to" {...DAYS} />
        </label>
        <label>
          Done by <span class="hint">(full name)</span>
          <input type="search" name="actor" maxLength={100} autocomplete="off" />
        </label>
        <label>
          What
          <select name="action">
            <option value="">anything</option>
            {Object.entries(ACTION_WORDS).map(([action, words]) => (
              <option key={action} value={action}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <label>
          Badge number
          <input type="search" name="badge" inputMode="numeric" autocomplete="off" />
        </label>
        <label>
          User ID <span class="hint">(in full)</span>
          <input type="search" name="user" autocomplete="off" autocapitalize="off" spellcheck={false} />
        </label>
        <button type="submit" class="primary">
          Show
        </button>
        {isNarrowed && (
          <a href={hrefOf("history")} onClick={focusHeading}>
            Show all
          </a>
        )}
      </form>
    </>
  );
}
