import { createContext } from "preact";
import { useCallback, useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ServerClient } from "../../client/index.ts";
import { type Session, SessionEnded } from "../session.ts";
import type { OpenList, Part } from "./pages.ts";
import { explain } from "./problems.ts";

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("this view needs a session");
  return session;
}

/** A field that shows this text whenever the text changes, and keeps the focus, which a new field would not have. */
export function useTextField(text: string) {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (field.current) field.current.value = text;
  }, [text]);
  return field;
}

/** A list reads pages until it has this many items, because a page of a search may have few although more follow. */
const FIRST_ITEMS = 20;

/** A return to the tab within this time does not reload. */
const FRESH_MILLISECONDS = 3000;

/** Calls back when the user returns to the page, which may be out of date. */
function useOnReturn(refresh: () => void): void {
  const latest = useRef(refresh);
  latest.current = refresh;
  useEffect(() => {
    let last = Date.now();
    const onReturn = () => {
      if (document.visibilityState !== "visible" || Date.now() - last < FRESH_MILLISECONDS) return;
      last = Date.now();
      latest.current();
    };
    addEventListener("focus", onReturn);
    document.addEventListener("visibilitychange", onReturn);
    return () => {
      removeEventListener("focus", onReturn);
      document.removeEventListener("visibilitychange", onReturn);
    };
  }, []);
}

/** Something that is loaded. Its value stays while it is reloaded. */
export interface Loaded<T> {
  value: T | null;
  isLoading: boolean;
  /** Null if the last attempt succeeded. */
  problem: string | null;
  reload: () => void;
}

type Work<T> = (server: ServerClient, signal: AbortSignal) => Promise<T>;

/** Loads at first, when the user returns to the page, and on `reload`. @param key changes with what is loaded */
export function useLoaded<T>(work: Work<T>, key = ""): Loaded<T> {
  const session = useSession();
  const [state, setState] = useState<Omit<Loaded<T>, "reload"> & { key: string }>({ ...NOTHING, key });
  const run = useRef(work);
  run.current = work;
  const calls = useRef(new AbortController());
  const start = useCallback(() => {
    calls.current.abort();
    calls.current = new AbortController();
    const { signal: abandoned } = calls.current;
    setState((before) => ({ value: before.key === key ? before.value : null, isLoading: true, problem: null, key }));
    session
      .run((server, signal) => run.current(server, AbortSignal.any([signal, abandoned])))
      .then(
        (value) => !abandoned.aborted && setState({ value, isLoading: false, problem: null, key }),
        (error: unknown) => {
          if (error instanceof SessionEnded || abandoned.aborted) return;
          setState((before) => ({ ...before, isLoading: false, problem: explain(error) }));
        },
      );
  }, [session, key]);
  // A step may call the reload of an earlier rendering, which had another key.
  const latest = useRef(start);
  latest.current = start;
  const reload = useCallback(() => latest.current(), []);
  useEffect(() => {
    start();
    return () => calls.current.abort();
  }, [start]);
  useOnReturn(reload);
  return { ...(state.key === key ? state : NOTHING), reload };
}

const NOTHING = { value: null, isLoading: true, problem: null };

/** A list that grows page by page. */
export interface PagedList<Item> {
  items: readonly Item[];
  /** Whether all items are loaded. */
  isComplete: boolean;
  isLoading: boolean;
  problem: string | null;
  /** Loads the next page. */
  more: () => void;
  /** Reloads as many items as are loaded or were wanted; those stay until then. */
  reload: () => void;
}

/**
 * A list that is reloaded when the user returns to the page.
 *
 * @param key changes with the list
 */
export function useList<Item>(open: OpenList<Item>, key: string): PagedList<Item> {
  const session = useSession();
  const [state, setState] = useState({ ...EMPTY_LIST, key });
  const opening = useRef(open);
  opening.current = open;
  /** `wanted`: how many items it is to have, also while it has fewer. */
  const current = useRef<{ iterator: AsyncIterator<Part<Item>>; items: readonly Item[]; wanted: number } | null>(null);

  /** Reads pages until there are as many items as wanted, or no more. */
  const read = useCallback(
    async (list: NonNullable<typeof current.current>) => {
      try {
        let isComplete = false;
        // A page of a search may be empty although more follow. Stop if the list is no longer shown.
        while (current.current === list && list.items.length < list.wanted && !isComplete) {
          const { value, done } = await session.run(() => list.iterator.next());
          if (done !== true) list.items = [...list.items, ...value.items];
          isComplete = done === true || value.isLast;
          if (current.current !== list) return;
          const isLoading = !isComplete && list.items.length < list.wanted;
          const shown = { items: list.items, isComplete, isLoading, problem: null, key };
          // A reload keeps the rows that are shown until it has read more.
          setState((before) => (isLoading && before.items.length >= list.items.length ? before : shown));
        }
      } catch (error) {
        if (error instanceof SessionEnded || current.current !== list) return;
        setState((before) => ({ ...before, isLoading: false, problem: explain(error) }));
      }
    },
    [session, key],
  );
  const start = useCallback(
    (wanted: number) => {
      setState((before) => ({ ...(before.key === key ? before : EMPTY_LIST), isLoading: true, problem: null, key }));
      void session
        .run(async (server, signal) => {
          const list = { iterator: opening.current(server, signal)[Symbol.asyncIterator](), items: [], wanted };
          current.current = list;
          await read(list);
        })
        .catch(() => undefined);
    },
    [session, key, read],
  );
  useEffect(() => {
    start(FIRST_ITEMS);
    return () => {
      current.current = null;
    };
  }, [start]);
  const more = () => {
    const list = current.current;
    if (list === null) return start(FIRST_ITEMS);
    setState((before) => ({ ...before, isLoading: true, problem: null }));
    list.wanted = list.items.length + 1;
    void read(list);
  };
  // As in `useLoaded`.
  const latest = useRef(start);
  latest.current = start;
  const reload = () => {
    const { items, wanted } = current.current ?? { items: [], wanted: FIRST_ITEMS };
    latest.current(Math.max(wanted, items.length));
  };
  useOnReturn(reload);
  const shown = state.key === key ? state : EMPTY_LIST;
  return { ...shown, items: shown.items as readonly Item[], more, reload };
}

const EMPTY_LIST = {
  items: [] as readonly unknown[],
  isComplete: false,
  isLoading: true,
  problem: null as string | null,
};
