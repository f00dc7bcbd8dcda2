import { useState } from "preact/hooks";
import type { BadgeState, ListedBadge, ServerClient } from "../../client/index.ts";
import { useList, useLoaded, useSession } from "../parts/hooks.ts";
import { inTurn, type OpenList, pagesOf } from "../parts/pages.ts";
import { goTo, hrefOf, type Params } from "../parts/route.ts";
import { useSelection } from "../parts/selection.tsx";
import { Title } from "../parts/states.tsx";
import { Filters, Table } from "../parts/table.tsx";
import { BADGE_STATE_WORDS } from "../words.ts";
import { badgeColumns } from "./badge-columns.tsx";
import { Bulk } from "./bulk.tsx";
import { FoundPeople, Search } from "./search.tsx";
import { StepDialog } from "./step-dialog.tsx";
import type { BadgeStep } from "./steps.ts";

const PER_PAGE = 100;
const DAY_MILLISECONDS = 24 * 3600 * 1000;
const STATES = ["active", "suspended", "expired", "revoked", "replaced"] as const;
/** Together all states, in the order in which they are listed. Undefined is those in use. */
const ALL_STATES = [undefined, "expired", "revoked", "replaced"] as const;

/** The search in the address; unknown values count as absent. */
function searchOf({ state, q = "", ends, order }: Params) {
  const wanted = [...q.trim()].length >= 2 ? q.trim() : undefined;
  const days = /^[1-9]\d{0,3}$/.test(ends ?? "") ? Number(ends) : null;
  return {
    state: state === "all" ? ("all" as const) : STATES.find((each) => each === state),
    q: wanted,
    endsBefore: days === null ? undefined : new Date(Date.now() + days * DAY_MILLISECONDS),
    days,
    order: order === "oldest" && (state ?? wanted ?? days ?? null) !== null ? undefined : ("newest" as const),
  };
}

/** The badges of the search in the address. The service lists one state at a time, so "all states" is several lists. */
function openSearch(server: ServerClient, params: Params, perPage: number, signal: AbortSignal) {
  const { state, ...search } = searchOf(params);
  const open = (one: BadgeState | undefined) =>
    pagesOf(server.searchBadges({ ...search, state: one, perPage, signal }), ({ badges }) => badges);
  return state === "all" ? inTurn(ALL_STATES.map(open)) : open(state);
}

/** Searches, filters and lists badges. The whole search is in the address. */
export function Badges({ params }: { params: Params }) {
  const session = useSession();
  const [asking, setAsking] = useState<{ badge: ListedBadge; step: BadgeStep } | null>(null);
  const { state, q, days } = searchOf(params);
  const open =
    (perPage: number): OpenList<ListedBadge> =>
    (server, signal) =>
      openSearch(server, params, perPage, signal);
  const list = useList(open(PER_PAGE), JSON.stringify(params));
  const statistics = useLoaded((server, signal) => server.getStatistics({ signal }));
  const selection = useSelection(
    list.items,
    ({ id }) => id,
    ({ id, userId, name }) => `badge ${id}, ${name ?? userId}`,
  );
  const refresh = () => {
    list.reload();
    statistics.reload();
  };
  const counts = statistics.value?.badgesByState;
  const isCounted = q === undefined && days === null;
  // Unfiltered and oldest first, the service would return the list of contract section 4, without the times shown here.
  const isNarrowed = !isCounted || state !== undefined;
  const href = (changed: Record<string, string | undefined>) => hrefOf("badges", { ...params, ...changed });
  const columns = badgeColumns((badge, step) => setAsking({ badge, step }));
  return (
    <>
      <Title>Badges</Title>
      <Search params={params} />
      <div class="filter-line">
        <Filters
          label="States"
          choices={([undefined, "all", ...STATES] as const).map((each) => ({
            title: each === undefined ? "In use" : each === "all" ? "All states" : BADGE_STATE_WORDS[each],
            href: href({ state: each }),
            isChosen: state === each,
            count: isCounted && counts ? totalOf(counts, each) : undefined,
          }))}
        />
        <label class="inline">
          Ending
          <select
            value={params.ends ?? ""}
            onChange={(event) => goTo("badges", { ...params, ends: event.currentTarget.value })}
          >
            <option value="">at any time</option>
            <option value="1">within a day</option>
            <option value="7">within a week</option>
            <option value="30">within 30 days</option>
          </select>
        </label>
        {isNarrowed && (
          <label class="inline">
            Order
            <select
              value={params.order ?? "newest"}
              onChange={(event) => goTo("badges", { ...params, order: event.currentTarget.value })}
            >
              <option value="newest">newest first</option>
              <option value="oldest">oldest first</option>
            </select>
          </label>
        )}
      </div>
      {q !== undefined && !list.isLoading && <FoundPeople q={q} badges={list.items} />}
      {session.may("change") && <Bulk selection={selection} onDone={refresh} />}
      <Table
        noun="badges"
        list={list}
        columns={session.may("change") ? [selection.column, ...columns] : columns}
        keyOf={({ id }) => id}
        open={open(1000)}
        total={isCounted && counts ? totalOf(counts, state) : undefined}
        empty={
          Object.keys(params).length === 0
            ? "No badges yet. They appear here as soon as phones log in."
            : "No badge matches. Try fewer letters, another state, or any time."
        }
      />
      {asking !== null && (
        <StepDialog
          id={asking.badge.id}
          step={asking.step}
          seenAt={asking.badge.changedAt}
          onDone={refresh}
          onClose={() => setAsking(null)}
        />
      )}
      {session.may("change") ? null : <p class="hint">Your role may read badges, but not change them.</p>}
    </>
  );
}

/** @param state undefined for those in use */
function totalOf(counts: Record<BadgeState, number>, state: BadgeState | "all" | undefined): number {
  if (state === undefined) return counts.active + counts.suspended;
  return state === "all" ? STATES.reduce((sum, each) => sum + counts[each], 0) : counts[state];
}
