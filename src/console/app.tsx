import { useLayoutEffect, useState } from "preact/hooks";
import { watchIdle } from "./idle.ts";
import { SessionContext } from "./parts/hooks.ts";
import type { Session, SessionEnd } from "./session.ts";
import { SignIn } from "./sign-in.tsx";
import { Workplace } from "./workplace.tsx";

/** The sign-in, or what a signed-in person sees. */
export function App() {
  const [session, setSession] = useState<Session | null>(null);
  const [end, setEnd] = useState<SessionEnd | null>(null);
  const forget = (reason: SessionEnd) => {
    setSession(null);
    setEnd(reason);
  };
  // An effect would begin only after the next frame; nobody may use the page unwatched until then.
  useLayoutEffect(() => (session === null ? undefined : watchIdle(() => session.end("idle"))), [session]);
  // A browser keeps a page that one leaves, with its memory, and shows it again on Back.
  useLayoutEffect(() => {
    if (session === null) return undefined;
    const leave = () => session.end("left");
    addEventListener("pagehide", leave);
    return () => removeEventListener("pagehide", leave);
  }, [session]);
  if (session === null) return <SignIn end={end} onSignIn={setSession} onEnd={forget} />;
  return (
    <SessionContext.Provider value={session}>
      <Workplace />
    </SessionContext.Provider>
  );
}
