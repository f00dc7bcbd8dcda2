import { createContext } from "preact";
import { useCallback, useContext, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { SessionEnded } from "../session.ts";
import { explain } from "./problems.ts";

/** Messages about what has just been done. There is one at a time. */
export interface Notice {
  text: string;
  /** IDs of what it tells of: a badge and its user, or a delivery. It goes when they are no longer shown. */
  about: readonly string[];
  tone?: "good" | "warning" | "bad";
  /** Absent: it cannot be undone, or there is nothing to undo. @returns what tells of it */
  undo?: () => Promise<Notice>;
}

export interface Notices {
  /** Shows a message and gives it the focus: the button that was pressed is often gone. */
  notify: (notice: Notice) => void;
  /** Shows what came of an earlier message instead of it, if that is still shown; whoever is typing is not disturbed. */
  follow: (notice: Notice) => void;
  /** Removes the message, unless it is about this, and lets every button act again. */
  dismiss: (unless?: string) => void;
  /** Whether a button may act: for a second after a step, only those beside it do. */
  mayAct: (about: string) => boolean;
}

/** A double click, or one that was aimed before the page changed, comes within this. */
const STRAY_CLICK_MILLISECONDS = 1000;

export const NoticeContext = createContext<Notices>({
  notify: () => undefined,
  follow: () => undefined,
  dismiss: () => undefined,
  mayAct: () => true,
});

export const useNotices = (): Notices => useContext(NoticeContext);

/** @returns the message, and what the views do with it */
export function useNoticeBoard(): { shown: { notice: Notice; serial: number } | null; notices: Notices } {
  const [shown, setShown] = useState<{ notice: Notice; serial: number } | null>(null);
  const lastStep = useRef<{ about: readonly string[]; at: number } | null>(null);
  const notify = useCallback((notice: Notice) => {
    lastStep.current = { about: notice.about, at: performance.now() };
    setShown((before) => ({ notice, serial: (before?.serial ?? 0) + 1 }));
  }, []);
  const notices = useMemo<Notices>(
    () => ({
      notify,
      follow: (notice) =>
        setShown((before) =>
          before?.notice.about.some((id) => notice.about.includes(id)) ? { ...before, notice } : before,
        ),
      dismiss: (unless) => {
        lastStep.current = null;
        setShown((before) => (unless !== undefined && before?.notice.about.includes(unless) ? before : null));
      },
      mayAct: (about) => {
        const last = lastStep.current;
        return last === null || last.about.includes(about) || performance.now() - last.at >= STRAY_CLICK_MILLISECONDS;
      },
    }),
    [notify],
  );
  return { shown, notices };
}

/** The message. It lies over the page, so that nothing moves under a pointer. */
export function NoticeBar({ notice }: { notice: Notice }) {
  const { notify, dismiss } = useNotices();
  const message = useRef<HTMLParagraphElement>(null);
  const [isBusy, setBusy] = useState(false);
  useLayoutEffect(() => message.current?.focus({ preventScroll: true }), []);
  const undo = async () => {
    if (isBusy || notice.undo === undefined) return;
    setBusy(true);
    try {
      notify(await notice.undo());
    } catch (error) {
      if (!(error instanceof SessionEnded)) notify({ text: explain(error), about: notice.about, tone: "bad" });
    }
  };
  const close = () => {
    focusSubject(notice.about);
    dismiss();
  };
  return (
    <div class={`notice notice-${notice.tone ?? "good"}`}>
      <p class="notice-text" ref={message} tabIndex={-1}>
        {notice.text}
      </p>
      {notice.undo !== undefined && (
        <button type="button" aria-disabled={isBusy} onClick={undo}>
          {isBusy ? "Working…" : "Undo"}
        </button>
      )}
      <button type="button" aria-label="Close message" onClick={close}>
        ✕
      </button>
    </div>
  );
}

/** Gives the focus to the first button of what a message was about, or to the view's heading. */
function focusSubject(about: readonly string[]): void {
  const subject = about.map((id) => document.querySelector(`[data-about="${CSS.escape(id)}"]`)).find(Boolean);
  const button = subject?.querySelector<HTMLButtonElement>(".actions button");
  if (button) button.focus();
  else focusHeading();
}

/** Gives the focus to the view's heading, when what had it is gone. */
export const focusHeading = (): void => document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
