import { useRef, useState } from "preact/hooks";
import { BadgeServiceError, type BadgeState, type ListedBadge } from "../../client/index.ts";
import { actorWords } from "../history/words.ts";
import { type OpenList, pagesOf, useList, useLoaded, useSession } from "../parts/hooks.ts";
import { Person, Plainly } from "../parts/identity.tsx";
import { Menu } from "../parts/menu.tsx";
import { useNotify } from "../parts/notice.tsx";
import { explain } from "../parts/problems.ts";
import { goTo, hrefOf } from "../parts/route.ts";
import { Title } from "../parts/states.tsx";
import { ACTIONS, type Column, Filters, Table } from "../parts/table.tsx";
import { Chip, Digits, shortTime, When } from "../parts/texts.tsx";
import { SessionEnded } from "../session.ts";
import { BADGE_STATE_WORDS, BADGE_TONES } from "../words.ts";
import { StepDialog } from "./step-dialog.tsx";
import { type BadgeStep, stepsOf } from "./steps.ts";

const PER_PAGE = 100;
const DAY_MILLISECONDS = 24 * 3600 * 1000;
const STATES = ["active", "suspended", "expired", "revoked", "replaced"] as const;

type Params = Readonly<Record<string, string>>;

/** What the address asks for; unknown values count as absent. */
function searchOf({ state, q = "", ends, order }: Params) {
  const wanted = [...q.trim()].length >= 2 ? q.trim() : undefined;
  const days = /^[1-9]\d{0,3}$/.test(ends ?? "") ? Number(ends) : null;
  return {
    state: STATES.find((each) => each === state),
    q: wanted,
    endsBefore: days === null ? undefined : new Date(Date.now() + days * DAY_MILLISECONDS),
    days,
    order: order === "oldest" && (state ?? wanted ?? days ?? null) !== null ? undefined : ("newest" as const),
  };
}

/** Searches, filters and lists badges; everything that is asked for stands in the address. */
export function Badges({ params }: { params: Params }) {
  const session = useSession();
  const [asking, setAsking] = useState<{ badge: ListedBadge; step: BadgeStep } | null>(null);
  const { state, q, days } = searchOf(params);
  const open =
    (perPage: number): OpenList<ListedBadge> =>
    (server, signal) =>
      pagesOf(server.searchBadges({ ...searchOf(params), perPage, signal }), ({ badges }) => badges);
  const list = useList(open(PER_PAGE), JSON.stringify(params));
  const statistics = useLoaded((server, signal) => server.getStatistics({ signal }));
  const counts = statistics.value?.badgesByState;
  const isCounted = q === undefined && days === null;
  // The whole list, oldest first, is that of contract section 4, without the times that stand here.
  const isNarrowed = !isCounted || state !== undefined;
  const href = (changed: Record<string, string | undefined>) => hrefOf("badges", { ...params, ...changed });
  const columns: readonly Column<ListedBadge>[] = [
    {
      title: "Person",
      isName: true,
      cell: ({ userId, name }) => <Person userId={userId} name={name} />,
      csv: ({ userId }) => userId,
    },
    { title: "Name", csv: ({ name = "" }) => name },
    {
      title: "Number",
      cell: ({ id }) => (
        <a href={hrefOf("badge", { id })}>
          <Digits value={id} />
        </a>
      ),
      csv: ({ id }) => id,
    },
    {
      title: "State",
      cell: (badge) => <StateChip badge={badge} />,
      csv: ({ state: itsState = "active" }) => BADGE_STATE_WORDS[itsState],
    },
    {
      title: "Issued",
      cell: ({ issuedAt }) => issuedAt && <When at={issuedAt} />,
      csv: ({ issuedAt = "" }) => issuedAt,
    },
    {
      title: "Ends",
      cell: ({ expiresAt }) => (expiresAt === undefined ? <span class="hint">no end</span> : <When at={expiresAt} />),
      csv: ({ expiresAt = "" }) => expiresAt,
    },
    {
      title: "Last change",
      cell: (badge) => <LastChange badge={badge} />,
      csv: ({ changedAt = "" }) => changedAt,
    },
    {
      title: ACTIONS,
      cell: (badge) => <BadgeMenu badge={badge} onStep={(step) => setAsking({ badge, step })} />,
    },
  ];
  return (
    <>
      <Title>Badges</Title>
      <Search params={params} />
      <div class="filter-line">
        <Filters
          label="States"
          choices={[
            {
              title: "In use",
              href: href({ state: undefined }),
              isChosen: state === undefined,
              count: isCounted && counts ? counts.active + counts.suspended : undefined,
            },
            ...STATES.map((each) => ({
              title: BADGE_STATE_WORDS[each],
              href: href({ state: each }),
              isChosen: state === each,
              count: isCounted ? counts?.[each] : undefined,
            })),
          ]}
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
      <Table
        noun="badges"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        open={open(1000)}
        total={isCounted && counts ? totalOf(counts, state) : undefined}
        empty={
          Object.keys(params).length === 0
            ? "No badges yet. They appear here as soon as phones log in."
            : "No badge fits. Try fewer letters, another state, or any time."
        }
      />
      {asking !== null && (
        <StepDialog
          id={asking.badge.id}
          step={asking.step}
          seenAt={asking.badge.changedAt}
          onDone={list.reload}
          onClose={() => setAsking(null)}
        />
      )}
      {session.may("change") ? null : <p class="hint">Your role may look at badges, not change them.</p>}
    </>
  );
}

const totalOf = (counts: Record<BadgeState, number>, state: BadgeState | undefined): number =>
  state === undefined ? counts.active + counts.suspended : counts[state];

/** A badge's state; one that has not begun yet says so. */
export function StateChip({
  badge: { state = "active", startsAt },
}: {
  badge: Pick<ListedBadge, "state" | "startsAt">;
}) {
  if (state === "active" && startsAt !== undefined && Date.parse(startsAt) > Date.now()) {
    return <Chip tone="waiting">Starts {shortTime(startsAt)}</Chip>;
  }
  return <Chip tone={BADGE_TONES[state]}>{BADGE_STATE_WORDS[state]}</Chip>;
}

/** The menu of a row. What the role may not do is not in it. */
function BadgeMenu({ badge, onStep }: { badge: ListedBadge; onStep: (step: BadgeStep) => void }) {
  const session = useSession();
  const { state = "active", issuedAt = "", changedAt = "" } = badge;
  const steps = session.may("change") ? stepsOf({ ...badge, state, issuedAt, changedAt }, session.application) : [];
  return (
    <Menu
      of={`badge ${badge.id}, ${badge.name ?? badge.userId}`}
      items={[
        { label: "Open", onChoose: () => goTo("badge", { id: badge.id }) },
        ...steps.map((step) => ({ label: `${step.label}…`, isFinal: step.isFinal, onChoose: () => onStep(step) })),
      ]}
    />
  );
}

function LastChange({ badge: { changedAt, changedBy, issuedAt } }: { badge: ListedBadge }) {
  if (changedAt === undefined) return null;
  if (changedBy === undefined) return changedAt === issuedAt ? <span class="hint">none</span> : <When at={changedAt} />;
  return (
    <>
      <When at={changedAt} />
      <span class="second">
        <Plainly text={actorWords(changedBy)} />
      </span>
    </>
  );
}

/** A number leads to its badge; anything else is part of a user ID or a name. */
function Search({ params }: { params: Params }) {
  const session = useSession();
  const notify = useNotify();
  const input = useRef<HTMLInputElement>(null);
  const [hint, setHint] = useState<string | null>(null);
  const search = async (event: Event) => {
    event.preventDefault();
    const text = input.current?.value.trim() ?? "";
    setHint(null);
    try {
      const id = numberIn(text);
      if (id !== null && (await exists(id))) return goTo("badge", { id });
    } catch (error) {
      if (error instanceof SessionEnded) return;
      return notify({ text: explain(error), tone: "bad" });
    }
    if (text !== "" && [...text].length < 2) return setHint("Enter at least two characters.");
    goTo("badges", { ...params, q: text });
  };
  const exists = async (id: string) => {
    try {
      await session.run((server, signal) => server.getBadge(id, { signal }));
      return true;
    } catch (error) {
      if (error instanceof BadgeServiceError && error.code === "UNKNOWN_BADGE") return false;
      throw error;
    }
  };
  return (
    <search>
      <form class="find" onSubmit={search}>
        <label>
          Badge number, or part of a user ID or name
          <input
            key={params.q}
            ref={input}
            type="search"
            defaultValue={params.q ?? ""}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            aria-describedby={hint === null ? undefined : "search-hint"}
          />
        </label>
        <button type="submit" class="primary">
          Search
        </button>
        {params.q !== undefined && <a href={hrefOf("badges", { ...params, q: undefined })}>Clear the search</a>}
      </form>
      {hint !== null && (
        <p class="problem" role="alert" id="search-hint">
          {hint}
        </p>
      )}
    </search>
  );
}

/** Spaces, points and hyphens between the digits are those of a number that was copied or read out. */
function numberIn(text: string): string | null {
  const digits = text.replaceAll(/[\s.,'’\p{Dash}]/gu, "");
  return /^[1-9]\d{0,15}$/.test(digits) ? digits : null;
}
