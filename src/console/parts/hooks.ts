import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import type { ServerClient } from "../../client/index.ts";
import { type Session, SessionEnded } from "../session.ts";
import type { OpenList, Part } from "./pages.ts";
import { explain } from "./problems.ts";

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("only views of a session are drawn without one");
  return session;
}

/** A list is read on until it has so many items: a page of a search may have few, and nobody would know that there are no more. */
const FIRST_ITEMS = 20;

/** Coming back to the tab within this shows what is there. */
const FRESH_MILLISECONDS = 3000;

/** Calls back when the reader comes back to the page, which may be out of date by then. */
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

/** Something that is loaded. A value stays while it is loaded again. */
export interface Loaded<T> {
  value: T | null;
  isLoading: boolean;
  /** Null: the last attempt succeeded. */
  problem: string | null;
  reload: () => void;
}

type Work<T> = (server: ServerClient, signal: AbortSignal) => Promise<T>;

/** Loads when it is drawn first, when the reader returns to the page, and when it is asked to. @param key of another value */
export function useLoaded<T>(work: Work<T>, key = ""): Loaded<T> {
  const session = useSession();
  const [state, setState] = useState<Omit<Loaded<T>, "reload"> & { key: string }>({ ...NOTHING, key });
  const run = useRef(work);
  run.current = work;
  const latest = useRef(new AbortController());
  const reload = useCallback(() => {
    latest.current.abort();
    latest.current = new AbortController();
    const { signal: abandoned } = latest.current;
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
  useEffect(() => {
    reload();
    return () => latest.current.abort();
  }, [reload]);
  useOnReturn(reload);
  return { ...(state.key === key ? state : NOTHING), reload };
}

const NOTHING = { value: null, isLoading: true, problem: null };

/** A list that grows page by page. */
export interface PagedList<Item> {
  items: readonly Item[];
  /** Whether all items are there. */
  isComplete: boolean;
  isLoading: boolean;
  problem: string | null;
  /** Loads the next page. */
  more: () => void;
  /** Loads again as many as there are; those stay until then. */
  reload: () => void;
}

/**
 * A list, which is loaded again when the reader returns to the page.
 *
 * @param key of another list
 */
export function useList<Item>(open: OpenList<Item>, key: string): PagedList<Item> {
  const session = useSession();
  const [state, setState] = useState({ ...EMPTY_LIST, key });
  const opening = useRef(open);
  opening.current = open;
  const current = useRef<{ iterator: AsyncIterator<Part<Item>>; items: readonly Item[] } | null>(null);

  /** Reads pages until there are this many items, or no more. */
  const read = useCallback(
    async (list: NonNullable<typeof current.current>, wanted: number) => {
      try {
        let isComplete = false;
        // A page of a search may be empty, and there are more. Nobody may look at the list any more, either.
        while (current.current === list && list.items.length < wanted && !isComplete) {
          const { value, done } = await session.run(() => list.iterator.next());
          if (done !== true) list.items = [...list.items, ...value.items];
          isComplete = done === true || value.isLast;
        }
        if (current.current !== list) return;
        setState({ items: list.items, isComplete, isLoading: false, problem: null, key });
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
          const list = { iterator: opening.current(server, signal)[Symbol.asyncIterator](), items: [] };
          current.current = list;
          await read(list, wanted);
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
    void read(list, list.items.length + 1);
  };
  const reload = () => start(Math.max(FIRST_ITEMS, current.current?.items.length ?? 0));
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
