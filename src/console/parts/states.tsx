import type { ComponentChildren } from "preact";
import type { Loaded } from "./hooks.ts";
import { focusHeading } from "./notice.tsx";

/** The heading of a view. It can be focused, so that a screen reader starts there. */
export const Title = ({ children }: { children: ComponentChildren }) => <h1 tabIndex={-1}>{children}</h1>;

/** What is shown while something loads, when it fails, and when there is nothing. */

export const Loading = ({ what }: { what: string }) => (
  <p class="loading" role="status">
    Loading {what}…
  </p>
);

export function Problem({ text, onRetry }: { text: string; onRetry?: () => void }) {
  const retry = () => {
    // The button disappears.
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

/** Shows something that is loaded, or why it is not. */
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
