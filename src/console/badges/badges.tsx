import { useRef, useState } from "preact/hooks";
import { type Badge, type BadgePage, BadgeServiceError, type ListedBadge } from "../../client/index.ts";
import { usePages, useSession } from "../parts/hooks.ts";
import { explain } from "../parts/problems.ts";
import { Loading, Problem, Rows } from "../parts/states.tsx";
import { SessionEnded } from "../session.ts";
import { BadgeCard } from "./badge-card.tsx";
import { UserCard } from "./user-card.tsx";

const PER_PAGE = 50;

/** What a search found. A text may be a badge number and a user ID at once. */
interface Found {
  query: string;
  badge: Badge | null;
  userId: string | null;
}

/** Finds badges by number or user, and lists all. */
export function Badges() {
  const session = useSession();
  const [found, setFound] = useState<Found | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const find = async (event: Event) => {
    event.preventDefault();
    const query = input.current?.value.trim() ?? "";
    if (query === "") return setFound(null);
    setBusy(true);
    setProblem(null);
    // Nothing may change under a pointer that is about to press a button of an older result.
    setFound(null);
    try {
      const badge = await session.run((server, signal) => findByNumber(query, (id) => server.getBadge(id, { signal })));
      setFound({ query, badge, userId: badge === null ? query : null });
    } catch (error) {
      if (!(error instanceof SessionEnded)) setProblem(explain(error));
    } finally {
      setBusy(false);
    }
  };
  const clear = () => {
    if (input.current) input.current.value = "";
    setProblem(null);
    setFound(null);
    input.current?.focus();
  };
  return (
    <>
      <h1>Badges</h1>
      <search>
        <form class="find" onSubmit={find}>
          <label>
            Badge number or user ID
            <input ref={input} type="search" autocomplete="off" autocapitalize="off" spellcheck={false} />
          </label>
          <button type="submit" class="primary">
            Find
          </button>
          {(found !== null || problem !== null) && (
            <button type="button" onClick={clear}>
              Show all
            </button>
          )}
        </form>
      </search>
      {problem !== null && <Problem text={problem} />}
      {isBusy && <Loading what="what you look for" />}
      {found === null && !isBusy && problem === null && <AllBadges />}
      {found?.badge && <BadgeCard key={found.badge.id} badge={found.badge} />}
      {found?.userId != null && <UserCard key={found.userId} userId={found.userId} />}
    </>
  );
}

function AllBadges() {
  const list = usePages<ListedBadge, BadgePage>(
    (server, signal) => server.listBadges({ perPage: PER_PAGE, signal }),
    ({ badges }) => badges,
  );
  return (
    <>
      <p class="hint">Active and suspended badges, oldest first. A badge that has ended is found by its number.</p>
      <Rows
        list={list}
        what="badges"
        keyOf={({ id }) => id}
        empty="No badges yet. They appear here as soon as phones log in."
      >
        {(badge) => <BadgeCard badge={{ ...badge, state: badge.state ?? "active" }} />}
      </Rows>
    </>
  );
}

/** Spaces and points between the digits are those of a number that was copied from a list. */
async function findByNumber(query: string, getBadge: (id: string) => Promise<Badge>): Promise<Badge | null> {
  const id = query.replaceAll(/[\s.,'’]/g, "");
  if (!/^[1-9]\d{0,15}$/.test(id)) return null;
  try {
    return await getBadge(id);
  } catch (error) {
    if (error instanceof BadgeServiceError && error.code === "UNKNOWN_BADGE") return null;
    throw error;
  }
}
