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
