import { createContext } from "preact";
import { useCallback, useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ServerClient } from "../../client/index.ts";
import type { Known } from "../known.ts";
import { type Session, SessionEnded } from "../session.ts";
import { explain } from "./problems.ts";

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("only views of a session are drawn without one");
  return session;
}

/** Badges and users that the session has seen; redraws when they change. */
export function useKnown(): Known {
  const { known } = useSession();
  const [, redraw] = useState(0);
  useLayoutEffect(() => known.subscribe(() => redraw((times) => times + 1)), [known]);
  return known;
}

/** Something that is loaded. A value stays while it is loaded again. */
export interface Loaded<T> {
  value: T | null;
  isLoading: boolean;
  /** Null: the last attempt succeeded. */
  problem: string | null;
  reload: () => void;
}

type Work<T> = (server: ServerClient, signal: AbortSignal) => Promise<T>;

/** Loads when it is drawn first, and when it is asked to again. @param work does not change while it is drawn */
export function useLoaded<T>(work: Work<T>): Loaded<T> {
  const session = useSession();
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({ value: null, isLoading: true, problem: null });
  const run = useRef(work);
  const latest = useRef(0);
  const reload = useCallback(() => {
    const attempt = ++latest.current;
    const isLatest = () => attempt === latest.current;
    setState(({ value }) => ({ value, isLoading: true, problem: null }));
    session.run(run.current).then(
      (value) => isLatest() && setState({ value, isLoading: false, problem: null }),
      (error: unknown) => {
        if (error instanceof SessionEnded || !isLatest()) return;
        setState(({ value }) => ({ value, isLoading: false, problem: explain(error) }));
      },
    );
  }, [session]);
  useEffect(reload, [reload]);
  return { ...state, reload };
}

/** A list that grows page by page. */
export interface PagedList<Item> {
  items: readonly Item[];
  /** Whether all items are there. */
  isComplete: boolean;
  isLoading: boolean;
  problem: string | null;
  /** Loads the next page. */
  more: () => void;
  /** Starts again from the beginning. */
  reload: () => void;
}

type Pages<Page> = (server: ServerClient, signal: AbortSignal) => AsyncIterable<Page>;

/**
 * @param pages opens the list
 * @param itemsOf the items of a page
 * @param key starts again when it changes
 */
export function usePages<Item, Page extends { nextCursor: string | null }>(
  pages: Pages<Page>,
  itemsOf: (page: Page) => readonly Item[],
  key = "",
): PagedList<Item> {
  const session = useSession();
  const [state, setState] = useState<Omit<PagedList<Item>, "more" | "reload">>(FIRST);
  const latest = useRef({ pages, itemsOf });
  latest.current = { pages, itemsOf };
  const iterator = useRef<AsyncIterator<Page> | null>(null);
  const more = useCallback(async () => {
    const from = iterator.current;
    if (from === null) return;
    setState((before) => ({ ...before, isLoading: true, problem: null }));
    try {
      const { value, done } = await session.run(() => from.next());
      if (iterator.current !== from) return;
      const isComplete = done === true || value.nextCursor === null;
      const items = done === true ? [] : latest.current.itemsOf(value);
      setState((before) => ({ items: [...before.items, ...items], isComplete, isLoading: false, problem: null }));
    } catch (error) {
      if (error instanceof SessionEnded || iterator.current !== from) return;
      setState((before) => ({ ...before, isLoading: false, problem: explain(error) }));
    }
  }, [session]);
  const reload = useCallback(() => {
    setState(FIRST);
    session
      .run(async (server, signal) => {
        iterator.current = latest.current.pages(server, signal)[Symbol.asyncIterator]();
      })
      .then(more, () => undefined);
  }, [session, more]);
  // Another key is another list.
  useEffect(() => {
    reload();
    return () => {
      iterator.current = null;
    };
  }, [reload, key]);
  return { ...state, more: () => void more(), reload };
}

const FIRST = { items: [], isComplete: false, isLoading: true, problem: null };
