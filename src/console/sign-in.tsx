import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { explain } from "./parts/problems.ts";
import { Title } from "./parts/states.tsx";
import { Session, type SessionEnd } from "./session.ts";

const END_TEXTS: Readonly<Record<SessionEnd, string>> = {
  "signed-out": "You are signed out. This tab has forgotten the secret.",
  idle: "You were signed out after an hour without activity. This tab has forgotten the secret.",
  left: "You left this page, so this tab has forgotten the secret.",
  refused: "The service no longer accepts your secret. Sign in again, or ask your administrator for a new one.",
};

/** The fields have no names, and the secret's is emptied after the sign-in, so that only the session has the secret. */
export function SignIn(props: {
  /** How the last session ended. */
  end: SessionEnd | null;
  onSignIn: (session: Session) => void;
  onEnd: (end: SessionEnd) => void;
}) {
  const { end, onSignIn, onEnd } = props;
  const id = useRef<HTMLInputElement>(null);
  const secret = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const note = useRef<HTMLParagraphElement>(null);
  // The focused element is gone with the session.
  useLayoutEffect(() => note.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy || id.current === null || secret.current === null) return;
    const credentials = { applicationId: id.current.value.trim(), applicationSecret: secret.current.value.trim() };
    setProblem(null);
    for (const [field, name] of [
      [id.current, "The application ID"],
      [secret.current, "The secret"],
    ] as const) {
      if (/^[\x21-\x7e]+$/.test(field.value.trim())) continue;
      setProblem(`${name} cannot be right: it has only letters, digits, - and _.`);
      field.focus();
      return field.select();
    }
    setBusy(true);
    try {
      const session = await Session.signIn(credentials, onEnd);
      secret.current.value = "";
      onSignIn(session);
    } catch (error) {
      setProblem(explain(error));
      setBusy(false);
      secret.current?.focus();
      secret.current?.select();
    }
  };
  return (
    <main class="sign-in">
      <Title>Sign in</Title>
      {end !== null && problem === null && (
        <p class="note" role="status" tabIndex={-1} ref={note}>
          {END_TEXTS[end]}
        </p>
      )}
      <form onSubmit={submit} autocomplete="off">
        <label>
          Application ID
          <input ref={id} required autocomplete="off" autocapitalize="off" spellcheck={false} placeholder="app_…" />
        </label>
        <label>
          Secret
          <input
            ref={secret}
            type="password"
            required
            autocomplete="off"
            aria-describedby="secret-use"
            placeholder="bdss_…"
          />
        </label>
        <p id="secret-use" class="hint">
          The secret that was created for you. It stays in this tab's memory and is forgotten when you sign out, reload
          or leave the page, or do nothing for an hour.
        </p>
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="primary" aria-disabled={isBusy}>
          {isBusy ? "Signing in…" : "Sign in"}
        </button>
      </form>
      <details>
        <summary>Where do I get a secret?</summary>
        <p>
          Ask your administrator, who creates one for you with{" "}
          <code>npm run -s admin -- secret add APPLICATION_ID --console NAME --role ROLE</code>. What you do is recorded
          under your name. It can be retired without affecting anybody else's.
        </p>
      </details>
    </main>
  );
}
