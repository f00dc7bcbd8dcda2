import { createContext } from "preact";
import { useContext, useEffect } from "preact/hooks";

/** Knows what would be lost if the reader left the view. */
export class LeavingGuard {
  #loss: string | null = null;

  /** What would be lost, in a sentence; null: nothing. */
  get loss(): string | null {
    return this.#loss;
  }

  /** @returns ends it */
  watch(loss: string): () => void {
    this.#loss = loss;
    return () => {
      this.#loss = null;
    };
  }
}

export const LeavingContext = createContext(new LeavingGuard());

/** Asks before the view, or the page, is left. @param loss what would be lost; null: nothing */
export function useAskBeforeLeaving(loss: string | null): void {
  const guard = useContext(LeavingContext);
  useEffect(() => {
    if (loss === null) return undefined;
    const stopWatching = guard.watch(loss);
    // The browser asks in words of its own.
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => {
      stopWatching();
      removeEventListener("beforeunload", ask);
    };
  }, [guard, loss]);
}
