import { useEffect, useState } from "preact/hooks";
import { SessionContext } from "./parts/hooks.ts";
import { type Session, type SessionEnd, watchIdle } from "./session.ts";
import { SignIn } from "./sign-in.tsx";
import { Workplace } from "./workplace.tsx";

/** The sign-in, or what a signed-in person sees. */
export function App() {
  const [session, setSession] = useState<Session | null>(null);
  const [end, setEnd] = useState<SessionEnd | null>(null);
  useEffect(() => (session === null ? undefined : watchIdle(() => session.end("idle"))), [session]);
  // A browser keeps a page that one leaves, with its memory, and shows it again on Back.
  useEffect(() => {
    if (session === null) return undefined;
    const leave = () => session.end("left");
    addEventListener("pagehide", leave);
    return () => removeEventListener("pagehide", leave);
  }, [session]);
  const forget = (reason: SessionEnd) => {
    setSession(null);
    setEnd(reason);
  };
  if (session === null) return <SignIn end={end} onSignIn={setSession} onEnd={forget} />;
  return (
    <SessionContext.Provider value={session}>
      <Workplace />
    </SessionContext.Provider>
  );
}
