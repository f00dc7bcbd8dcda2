import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { SessionEnded } from "../session.ts";
import { type Notice, useNotify } from "./notice.tsx";
import { explain } from "./problems.ts";

/**
 * Asks before an action, and does it. The browser's own dialog keeps the focus inside, closes on Escape, and returns the
 * focus to the button that opened it. The focus begins at the heading, so that another Enter, or one that is held down, does
 * nothing.
 */
export function ConfirmDialog(props: {
  title: string;
  /** The button that does it, such as `Suspend badge`; null if it cannot be done. */
  action: string | null;
  isFinal?: boolean;
  /**
   * @param closed aborted when the dialog is closed meanwhile
   * @returns the notice to show; null if the page shows the result itself
   */
  act: (reason: string | undefined, closed: AbortSignal) => Promise<Notice | null>;
  /** Whether it asks for a reason, which the history keeps. */
  asksReason?: boolean;
  /** What must be typed to confirm, such as a user ID, and what to call it. */
  toType?: { text: string; label: string };
  onClose: () => void;
  children: ComponentChildren;
}) {
  const { title, action, isFinal = false, act, asksReason = true, toType, onClose, children } = props;
  const notify = useNotify();
  const titleId = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const reason = useRef<HTMLInputElement>(null);
  const typed = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [closing] = useState(() => new AbortController());
  useLayoutEffect(() => dialog.current?.showModal(), []);
  useEffect(() => () => closing.abort(), [closing]);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    if (toType !== undefined && typed.current?.value.trim() !== toType.text.trim()) {
      setProblem(`That is not the ${toType.label}. Type it exactly.`);
      return typed.current?.focus();
    }
    setBusy(true);
    setProblem(null);
    notify(null);
    try {
      const notice = await act(reason.current?.value.replaceAll("\t", " ").trim() || undefined, closing.signal);
      // Closing returns the focus; then the notice takes it.
      dialog.current?.close();
      if (notice !== null) notify(notice);
    } catch (error) {
      if (error instanceof SessionEnded) return;
      if (closing.signal.aborted) return notify({ text: explain(error), tone: "bad" });
      setProblem(error instanceof Stopped ? null : explain(error));
      setBusy(false);
    }
  };
  const ignoreHeldEnter = (event: KeyboardEvent) => event.repeat && event.key === "Enter" && event.preventDefault();
  return (
    <dialog ref={dialog} aria-labelledby={titleId} onClose={onClose}>
      <form onSubmit={submit} onKeyDown={ignoreHeldEnter}>
        <h2 id={titleId} tabIndex={-1} autofocus>
          {title}
        </h2>
        {children}
        {asksReason && action !== null && (
          <label>
            Reason <span class="hint">(optional; the history keeps it)</span>
            <input ref={reason} maxLength={500} autocomplete="off" />
          </label>
        )}
        {toType !== undefined && (
          <label>
            To confirm, type the {toType.label}
            <input ref={typed} autocomplete="off" autocapitalize="off" spellcheck={false} />
          </label>
        )}
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            {action === null ? "Close" : "Cancel"}
          </button>
          {action !== null && (
            <button type="submit" class={isFinal ? "final" : "primary"} aria-disabled={isBusy}>
              {isBusy ? "Working…" : action}
            </button>
          )}
        </div>
      </form>
    </dialog>
  );
}

/** Nothing was done, and the dialog itself says why. */
export class Stopped extends Error {
  override readonly name = "Stopped";
}
