import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Loaded, PagedList } from "./hooks.ts";
import { focusHeading } from "./notice.tsx";

/** The heading of a view. It can be given the focus, so that a screen reader starts there. */
export const Title = ({ children }: { children: ComponentChildren }) => <h1 tabIndex={-1}>{children}</h1>;

/** What is shown while something loads, when it fails, and when there is nothing. */

export const Loading = ({ what }: { what: string }) => (
  <p class="loading" role="status">
    Loading {what}…
  </p>
);

export function Problem({ text, onRetry }: { text: string; onRetry?: () => void }) {
  const retry = () => {
    // The button goes.
    focusHeading();
    onRetry?.();
  };
  return (
    <div class="problem" role="alert">
      <p>{text}</p>
      {onRetry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export const Empty = ({ children }: { children: ComponentChildren }) => <p class="empty">{children}</p>;

/** Draws something that is loaded, or why it is not there. */
export function Show<T>(props: { loaded: Loaded<T>; what: string; children: (value: T) => ComponentChildren }) {
  const { loaded, what, children } = props;
  const { value, isLoading, problem, reload } = loaded;
  return (
    <>
      {problem !== null && <Problem text={problem} onRetry={reload} />}
      {value !== null && children(value)}
      {value === null && isLoading && <Loading what={what} />}
    </>
  );
}

/** Draws a list page by page. */
export function Rows<Item>(props: {
  list: PagedList<Item>;
  /** The items in one word, such as `badges`. */
  what: string;
  empty: ComponentChildren;
  keyOf: (item: Item) => string;
  children: (item: Item) => ComponentChildren;
}) {
  const { list, what, empty, keyOf, children } = props;
  const { items, isComplete, isLoading, problem, more, reload } = list;
  const rows = useRef<HTMLUListElement>(null);
  /** Index of the first item of the page that was asked for. */
  const next = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (next.current === null || items.length <= next.current) return;
    rows.current?.children[next.current]?.querySelector<HTMLElement>("button, [tabindex]")?.focus();
    next.current = null;
  }, [items.length]);
  const showMore = () => {
    next.current = items.length;
    more();
  };
  return (
    <>
      {items.length > 0 && (
        <ul class="rows" aria-label={what} ref={rows}>
          {items.map((item) => (
            <li key={keyOf(item)}>{children(item)}</li>
          ))}
        </ul>
      )}
      {items.length === 0 && isComplete && <Empty>{empty}</Empty>}
      {problem !== null && <Problem text={problem} onRetry={reload} />}
      {isLoading && <Loading what={what} />}
      {!isComplete && !isLoading && problem === null && (
        <button type="button" class="more" onClick={showMore}>
          Show more {what}
        </button>
      )}
    </>
  );
}
