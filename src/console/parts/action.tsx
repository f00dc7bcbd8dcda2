import { useState } from "preact/hooks";
import { SessionEnded } from "../session.ts";
import { useNotify } from "./notice.tsx";
import { explain } from "./problems.ts";

/** A button that does its step without asking, because nothing is lost by it. */
export function Action({ label, act }: { label: string; act: () => Promise<void> }) {
  const notify = useNotify();
  const [isBusy, setBusy] = useState(false);
  const run = async () => {
    if (isBusy) return;
    setBusy(true);
    try {
      await act();
    } catch (error) {
      if (!(error instanceof SessionEnded)) notify({ text: explain(error) });
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" aria-disabled={isBusy} onClick={run}>
      {isBusy ? "Working…" : label}
    </button>
  );
}
