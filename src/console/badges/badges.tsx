import { useRef, useState } from "preact/hooks";
import { type Badge, type BadgePage, BadgeServiceError } from "../../client/index.ts";
import { useKnown, usePages, useSession } from "../parts/hooks.ts";
import { focusHeading, useNotices } from "../parts/notice.tsx";
import { explain } from "../parts/problems.ts";
import { Loading, Problem, Rows, Title } from "../parts/states.tsx";
import { SessionEnded } from "../session.ts";
import { BadgeCard } from "./badge-card.tsx";
import { asListed } from "./change-badge.ts";
import { UserCard } from "./user-card.tsx";

const PER_PAGE = 50;

/** What a search found: a badge, or else the user whose ID it may be. */
type Found = { badgeId: string } | { userId: string };

/** Finds badges by number or user, and lists all. */
export function Badges() {
  const session = useSession();
  const { dismiss } = useNotices();
  const [found, setFound] = useState<Found | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const find = async (event: Event) => {
    event.preventDefault();
    const query = input.current?.value.trim() ?? "";
    if (query === "") return showAll();
    setBusy(true);
    setProblem(null);
    // Nothing may change under a pointer that is about to press a button of an older result.
    setFound(null);
    try {
      const badge = await session.run((server, signal) => findByNumber(query, (id) => server.getBadge(id, { signal })));
      if (badge !== null) session.known.learnBadge(badge);
      dismiss(badge?.id ?? query);
      setFound(badge === null ? { userId: query } : { badgeId: badge.id });
    } catch (error) {
      if (error instanceof SessionEnded) return;
      dismiss();
      setProblem(explain(error));
    } finally {
      setBusy(false);
    }
  };
  const showUser = (userId: string) => {
    if (input.current) input.current.value = userId;
    dismiss(userId);
    setFound({ userId });
    focusHeading();
  };
  const showAll = () => {
    if (input.current) input.current.value = "";
    dismiss();
    setProblem(null);
    setFound(null);
    input.current?.focus();
  };
  return (
    <>
      <Title>Badges</Title>
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
            <button type="button" onClick={showAll}>
              Show all
            </button>
          )}
        </form>
      </search>
      <div class="found">
        {problem !== null && <Problem text={problem} />}
        {isBusy && <Loading what="what you look for" />}
        {found === null && !isBusy && problem === null && <AllBadges onUser={showUser} />}
        {found !== null && "badgeId" in found && <BadgeCard key={found.badgeId} id={found.badgeId} onUser={showUser} />}
        {found !== null && "userId" in found && <UserCard key={found.userId} userId={found.userId} />}
      </div>
    </>
  );
}

function AllBadges({ onUser }: { onUser: (userId: string) => void }) {
  const known = useKnown();
  const list = usePages<Badge, BadgePage>(
    (server, signal) => server.listBadges({ perPage: PER_PAGE, signal }),
    ({ badges }) => badges.map((badge) => known.learnBadge(asListed(badge))),
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
        {({ id }) => <BadgeCard id={id} onUser={onUser} />}
      </Rows>
    </>
  );
}

/** Spaces, points and hyphens between the digits are those of a number that was copied or read out. */
async function findByNumber(query: string, getBadge: (id: string) => Promise<Badge>): Promise<Badge | null> {
  const id = query.replaceAll(/[\s.,'’\p{Dash}]/gu, "");
  if (!/^[1-9]\d{0,15}$/.test(id)) return null;
  try {
    return await getBadge(id);
  } catch (error) {
    if (error instanceof BadgeServiceError && error.code === "UNKNOWN_BADGE") return null;
    throw error;
  }
}
