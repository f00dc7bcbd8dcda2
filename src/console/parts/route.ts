import { useEffect, useState } from "preact/hooks";

/** The parameters in the address. */
export type Params = Readonly<Record<string, string>>;

/** The view and its parameters. All of a list's filters are in the address, so it can be reloaded, bookmarked and shared. */
export interface Route {
  view: string;
  params: Params;
}

/** The address of a view. Parameters that are undefined or empty are left out. */
export function hrefOf(view: string, params: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(params).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const query = new URLSearchParams(given).toString();
  return `#${view}${query && `?${query}`}`;
}

function parseRoute(hash: string): Route {
  const [view = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  return { view, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** Goes to a view; Back returns. */
export const goTo = (view: string, params?: Readonly<Record<string, string | undefined>>): void => {
  location.hash = hrefOf(view, params);
};

/** The route that the address names, also after it changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const follow = () => setRoute(parseRoute(location.hash));
    addEventListener("hashchange", follow);
    // It may have changed before the listener was added.
    follow();
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}
