import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { SessionEnded } from "../session.ts";
import { type Notice, useNotices } from "./notice.tsx";
import { explain } from "./problems.ts";

/**
 * Asks before a step, and does it. The browser's own dialog keeps the focus inside, closes on Escape, and gives the focus
 * back to the button that opened it.
 */
export function Ask(props: {
  title: string;
  /** The button that does it, such as `Suspend badge`. */
  action: string;
  isFinal?: boolean;
  /** @returns what tells of it; null: the page shows it */
  act: () => Promise<Notice | null>;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const { title, action, isFinal = false, act, onClose, children } = props;
  const { notify, dismiss } = useNotices();
  const dialog = useRef<HTMLDialogElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setProblem(null);
    dismiss();
    try {
      const notice = await act();
      // Closing gives the focus back; the message takes it from there.
      dialog.current?.close();
      if (notice !== null) notify(notice);
    } catch (error) {
      if (error instanceof SessionEnded) return;
      setProblem(explain(error));
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} aria-labelledby="ask-title" onClose={onClose}>
      <form onSubmit={submit}>
        <h2 id="ask-title">{title}</h2>
        {children}
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class={isFinal ? "final" : "primary"} aria-disabled={isBusy}>
            {isBusy ? "Working…" : action}
          </button>
        </div>
      </form>
    </dialog>
  );
}
