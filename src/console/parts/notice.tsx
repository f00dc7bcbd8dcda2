import { createContext } from "preact";
import { useContext } from "preact/hooks";

/** What has just been done, and how to undo it. */
export interface Notice {
  text: string;
  /** Absent: it cannot be undone, or there is nothing to undo. */
  undo?: () => Promise<void>;
}

export const NoticeContext = createContext<(notice: Notice) => void>(() => undefined);

/** Tells the reader what has been done. */
export const useNotify = (): ((notice: Notice) => void) => useContext(NoticeContext);
