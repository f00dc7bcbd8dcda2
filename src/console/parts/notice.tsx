import { type ComponentType, createContext } from "preact";
import { useCallback, useContext, useLayoutEffect, useRef, useState } from "preact/hooks";
import { SessionEnded } from "../session.ts";
import { explain } from "./problems.ts";

/** A message about what has just been done. There is one at a time. */
export interface Notice {
  text: string;
  tone?: "good" | "warning" | "bad";
  /** What the button does, if it is not "Undo". */
  label?: string;
  /** Shown after the text; it may update itself. */
  more?: ComponentType | undefined;
  /** Absent if it cannot be undone, or there is nothing to undo. @returns the next notice */
  undo?: (() => Promise<Notice>) | undefined;
}

/** Shows a message and gives it the focus, except from a field: the button that was pressed is often gone. Null removes it. */
export type Notify = (notice: Notice | null) => void;

export const NoticeContext = createContext<Notify>(() => undefined);

export const useNotify = (): Notify => useContext(NoticeContext);

interface ShownNotice {
  notice: Notice;
  serial: number;
  /** Of the view in which it was shown. */
  address: string;
}

/** @returns the current message, and a function that shows another */
export function useNoticeBoard(): { shown: ShownNotice | null; notify: Notify } {
  const [shown, setShown] = useState<ShownNotice | null>(null);
  const notify = useCallback((notice: Notice | null) => {
    const address = location.hash;
    setShown((before) => (notice === null ? null : { notice, serial: (before?.serial ?? 0) + 1, address }));
  }, []);
  return { shown, notify };
}

/** The message. It overlays the page, so that nothing moves under the pointer. */
export function NoticeBar({ notice }: { notice: Notice }) {
  const notify = useNotify();
  const message = useRef<HTMLParagraphElement>(null);
  const { more: More } = notice;
  const [isBusy, setBusy] = useState(false);
  useLayoutEffect(() => {
    if (document.activeElement?.matches("input, select, textarea")) return;
    message.current?.focus({ preventScroll: true });
  }, []);
  const undo = async () => {
    if (isBusy || notice.undo === undefined) return;
    setBusy(true);
    try {
      notify(await notice.undo());
    } catch (error) {
      if (error instanceof SessionEnded) return;
      notify({ text: explain(error), tone: "bad", label: "Try again", undo: notice.undo });
    }
  };
  const close = () => {
    focusHeading();
    notify(null);
  };
  return (
    <div class={`notice notice-${notice.tone ?? "good"}`}>
      <p class="notice-text" ref={message} tabIndex={-1}>
        {notice.text} {More && <More />}
      </p>
      {notice.undo !== undefined && (
        <button type="button" aria-disabled={isBusy} onClick={undo}>
          {isBusy ? "Working…" : (notice.label ?? "Undo")}
        </button>
      )}
      <button type="button" aria-label="Close message" onClick={close}>
        ✕
      </button>
    </div>
  );
}

/** Focuses the view's heading, when the focused element is gone. */
export const focusHeading = (): void => document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
