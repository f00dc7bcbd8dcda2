import { useRef, useState } from "preact/hooks";
import { SessionEnded } from "../session.ts";
import { type Notice, useNotices } from "./notice.tsx";
import { explain } from "./problems.ts";

/** A button that does its step without asking, because nothing is lost by it. */
export function Action(props: {
  label: string;
  /** ID of what the button stands beside. */
  about: string;
  /** The step goes on after `act`: the button waits. */
  isBusy?: boolean;
  act: () => Promise<Notice>;
}) {
  const { label, about, isBusy = false, act } = props;
  const { notify, dismiss, mayAct } = useNotices();
  const isRunning = useRef(false);
  const [isWorking, setWorking] = useState(false);
  const run = async () => {
    if (isBusy || isRunning.current || !mayAct(about)) return;
    isRunning.current = true;
    setWorking(true);
    dismiss();
    try {
      notify(await act());
    } catch (error) {
      if (!(error instanceof SessionEnded)) notify({ text: explain(error), about: [about], tone: "bad" });
    } finally {
      isRunning.current = false;
      setWorking(false);
    }
  };
  return (
    <button type="button" aria-disabled={isBusy || isWorking} onClick={run}>
      {isBusy || isWorking ? "Working…" : label}
    </button>
  );
}

/** A button that opens a question. */
export function Opener(props: { label: string; about: string; isFinal?: boolean | undefined; onOpen: () => void }) {
  const { label, about, isFinal = false, onOpen } = props;
  const { mayAct } = useNotices();
  return (
    <button type="button" class={isFinal ? "final" : undefined} onClick={() => mayAct(about) && onOpen()}>
      {label}…
    </button>
  );
}
