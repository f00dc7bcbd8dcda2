import { useEffect, useRef, useState } from "preact/hooks";
import { BadgeServiceError, type ListedBadge } from "../../client/index.ts";
import { useSession, useTextField } from "../parts/hooks.ts";
import { Person } from "../parts/identity.tsx";
import { focusHeading, useNotify } from "../parts/notice.tsx";
import { explain } from "../parts/problems.ts";
import { goTo, hrefOf, type Params } from "../parts/route.ts";
import { SessionEnded } from "../session.ts";

/** A number opens its badge; anything else is searched for in user IDs and names. */
export function Search({ params }: { params: Params }) {
  const session = useSession();
  const notify = useNotify();
  const input = useTextField(params.q ?? "");
  const [hint, setHint] = useState<string | null>(null);
  /** Counts searches. A late response of an earlier one, or of a page that was left, opens nothing. */
  const newest = useRef(0);
  useEffect(() => () => void newest.current++, []);
  const search = async (event: Event) => {
    event.preventDefault();
    const text = input.current?.value.trim() ?? "";
    setHint(null);
    const serial = ++newest.current;
    try {
      const id = numberIn(text);
      const isFound = id !== null && (await exists(id));
      if (serial !== newest.current) return;
      if (isFound) return goTo("badge", { id });
    } catch (error) {
      if (error instanceof SessionEnded || serial !== newest.current) return;
      return notify({ text: explain(error), tone: "bad" });
    }
    if (text !== "" && [...text].length < 2) return setHint("Enter at least two characters.");
    // A search for a person includes ended badges.
    goTo("badges", { ...params, q: text, state: text === "" ? params.state : (params.state ?? "all") });
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
            ref={input}
            type="search"
            maxLength={255}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            aria-describedby={hint === null ? undefined : "search-hint"}
          />
        </label>
        <button type="submit" class="primary">
          Search
        </button>
        {params.q !== undefined && (
          <a href={hrefOf("badges", { ...params, q: undefined, state: undefined })} onClick={focusHeading}>
            Clear the search
          </a>
        )}
      </form>
      {hint !== null && (
        <p class="problem" role="alert" id="search-hint">
          {hint}
        </p>
      )}
    </search>
  );
}

/** How many people are named above their badges. */
const MOST_PEOPLE = 8;

/** The people whose badges a search has found, and the person with exactly this user ID, even without a badge. */
export function FoundPeople({ q, badges }: { q: string; badges: readonly ListedBadge[] }) {
  const people = new Map(badges.map(({ userId, name }) => [userId, name]));
  const found = [...people].slice(0, MOST_PEOPLE);
  return (
    <p class="found-people">
      People:{" "}
      {found.map(([userId, name]) => (
        <span key={userId} class="found-person">
          <Person userId={userId} name={name} />
        </span>
      ))}
      {!people.has(q) && ![".", ".."].includes(q) && (
        <a href={hrefOf("person", { user: q })}>the person with exactly the user ID “{q}”</a>
      )}
    </p>
  );
}

/** Accepts spaces, points and hyphens between the digits of a number that was copied or dictated. */
function numberIn(text: string): string | null {
  const digits = text.replaceAll(/[\s.,'’\p{Dash}]/gu, "");
  return /^[1-9]\d{0,15}$/.test(digits) ? digits : null;
}
