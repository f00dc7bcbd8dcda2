import { useRef, useState } from "preact/hooks";
import type { Invitation } from "../../client/index.ts";
import { useSession } from "../parts/hooks.ts";
import { explain } from "../parts/problems.ts";
import { localInputValue } from "../parts/texts.tsx";
import { randomHex, SessionEnded } from "../session.ts";
import { InvitationCode } from "./invitation-code.tsx";

const DAY_MILLISECONDS = 24 * 3600 * 1000;
const KEY_RANDOM_BYTES = 16;

/** The form, and the code of the invitation that it created last. */
export function NewInvitation({ onCreated }: { onCreated: () => void }) {
  const session = useSession();
  const [expiresAt, setExpiresAt] = useState(() => localInputValue(new Date(Date.now() + DAY_MILLISECONDS)));
  const [badgeEnd, setBadgeEnd] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [created, setCreated] = useState<Invitation | null>(null);
  /** Of the invitation that is being asked for: another try after a lost response gets the same one. */
  const attempt = useRef<{ key: string; form: string } | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setProblem(null);
    const form = `${expiresAt} ${badgeEnd}`;
    if (attempt.current?.form !== form) attempt.current = { form, key: randomHex(KEY_RANDOM_BYTES) };
    const { key: idempotencyKey } = attempt.current;
    try {
      const invitation = await session.run((server, signal) =>
        server.createInvitation({
          expiresAt: new Date(expiresAt),
          badgeExpiresAt: badgeEnd === "" ? undefined : new Date(badgeEnd),
          udid: session.udid,
          idempotencyKey,
          signal,
        }),
      );
      attempt.current = null;
      setCreated(invitation);
      onCreated();
    } catch (error) {
      if (error instanceof SessionEnded) return;
      setProblem(explain(error));
    } finally {
      setBusy(false);
    }
  };
  if (created !== null) return <InvitationCode invitation={created} onDone={() => setCreated(null)} />;
  return (
    <section class="card" aria-labelledby="invite">
      <h2 id="invite">Invite a visitor</h2>
      <p class="hint">You get a code. The first phone that presents it in your app gets a badge.</p>
      <form class="inline-form" onSubmit={submit}>
        <label>
          Code valid until
          <input
            type="datetime-local"
            required
            value={expiresAt}
            onInput={(event) => setExpiresAt(event.currentTarget.value)}
          />
        </label>
        <label>
          Badge ends (optional)
          <input type="datetime-local" value={badgeEnd} onInput={(event) => setBadgeEnd(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary" aria-disabled={isBusy}>
          {isBusy ? "Working…" : "Create invitation"}
        </button>
      </form>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </section>
  );
}
