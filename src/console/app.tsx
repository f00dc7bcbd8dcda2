import { useLayoutEffect, useState } from "preact/hooks";
import { watchIdle } from "./idle.ts";
import { SessionContext } from "./parts/hooks.ts";
import type { Session, SessionEnd } from "./session.ts";
import { SignIn } from "./sign-in.tsx";
import { Workplace } from "./workplace.tsx";

/** The sign-in page, or what a signed-in person sees. */
export function App() {
  const [session, setSession] = useState<Session | null>(null);
  const [end, setEnd] = useState<SessionEnd | null>(null);
  const forget = (reason: SessionEnd) => {
    setSession(null);
    setEnd(reason);
  };
  // useEffect would begin only after the next frame, so idleness would not be watched until then.
  useLayoutEffect(() => (session === null ? undefined : watchIdle(() => session.end("idle"))), [session]);
  // Browsers keep a page that was left, with its memory, and show it again on Back.
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
