import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Invitation } from "../../client/index.ts";
import { useSession } from "../parts/hooks.ts";
import { useNotices } from "../parts/notice.tsx";
import { localInputValue, YOUR_TIME_ZONE } from "../parts/texts.tsx";
import { randomHex, SessionEnded } from "../session.ts";
import { InvitationCode } from "./invitation-code.tsx";
import { ENTER_UNTIL, type InvitationProblem, problemOf, problemOfError, SCAN_BY } from "./invitation-problem.ts";

const DAY_MILLISECONDS = 24 * 3600 * 1000;
const KEY_RANDOM_BYTES = 16;

/** The form, and the code of the invitation that it created last. */
export function NewInvitation({ onCreated }: { onCreated: () => void }) {
  const [created, setCreated] = useState<Invitation | null>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const wasCreated = useRef(false);
  useLayoutEffect(() => {
    // "Done" is gone.
    if (created === null && wasCreated.current) heading.current?.focus();
    wasCreated.current = created !== null;
  }, [created]);
  if (created !== null) return <InvitationCode invitation={created} onDone={() => setCreated(null)} />;
  return (
    <section class="card" aria-labelledby="invite">
      <h2 id="invite" ref={heading} tabIndex={-1}>
        Invite a visitor
      </h2>
      <p class="hint">You get a code. The first phone that presents it in your app gets a badge.</p>
      <InvitationForm
        onCreated={(invitation) => {
          setCreated(invitation);
          onCreated();
        }}
      />
    </section>
  );
}

function InvitationForm({ onCreated }: { onCreated: (invitation: Invitation) => void }) {
  const session = useSession();
  const { dismiss } = useNotices();
  /** Null: not chosen yet. A badge without an end has to be wanted. */
  const [hasEnd, setHasEnd] = useState<boolean | null>(null);
  const [end, setEnd] = useState("");
  /** Null: not touched. */
  const [chosenScanBy, setScanBy] = useState<string | null>(null);
  const [tomorrow] = useState(() => localInputValue(new Date(Date.now() + DAY_MILLISECONDS)));
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<InvitationProblem | null>(null);
  const fields = { end: useRef<HTMLInputElement>(null), scanBy: useRef<HTMLInputElement>(null) };
  /** Of the invitation that is being asked for: another try after a lost response gets the same one. */
  const attempt = useRef<{ key: string; form: string } | null>(null);
  const scanBy = chosenScanBy ?? (hasEnd === true && end !== "" && end < tomorrow ? end : tomorrow);

  const fail = (found: InvitationProblem) => {
    setProblem(found);
    if (found.field !== null) fields[found.field].current?.focus();
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy || hasEnd === null) return;
    setProblem(null);
    dismiss();
    const badgeExpiresAt = hasEnd ? new Date(end) : undefined;
    const expiresAt = new Date(scanBy);
    const found = problemOf(badgeExpiresAt ?? null, expiresAt, Date.now());
    if (found !== null) return fail(found);
    setBusy(true);
    const form = `${scanBy} ${hasEnd ? end : ""}`;
    if (attempt.current?.form !== form) attempt.current = { form, key: randomHex(KEY_RANDOM_BYTES) };
    const { key: idempotencyKey } = attempt.current;
    try {
      const invitation = await session.run((server, signal) =>
        server.createInvitation({ expiresAt, badgeExpiresAt, udid: session.udid, idempotencyKey, signal }),
      );
      attempt.current = null;
      onCreated(invitation);
    } catch (error) {
      if (!(error instanceof SessionEnded)) fail(problemOfError(error));
    } finally {
      setBusy(false);
    }
  };
  const faulty = (field: InvitationProblem["field"]) =>
    problem?.field === field ? ({ "aria-invalid": true, "aria-describedby": "invitation-problem" } as const) : {};
  return (
    <form class="invitation-form" onSubmit={submit}>
      <fieldset>
        <legend>
          {ENTER_UNTIL} <span class="hint">({YOUR_TIME_ZONE})</span>
        </legend>
        <label class="choice">
          <input type="radio" name="until" required checked={hasEnd === true} onChange={() => setHasEnd(true)} />A time
        </label>
        <input
          ref={fields.end}
          type="datetime-local"
          aria-label={`${ENTER_UNTIL}: date and time`}
          required={hasEnd === true}
          value={end}
          {...faulty("end")}
          onInput={(event) => {
            setHasEnd(true);
            setEnd(event.currentTarget.value);
          }}
        />
        <label class="choice">
          <input type="radio" name="until" required checked={hasEnd === false} onChange={() => setHasEnd(false)} />
          No end: the badge works until somebody ends it
        </label>
      </fieldset>
      <label>
        {SCAN_BY} <span class="hint">({YOUR_TIME_ZONE})</span>
        <input
          ref={fields.scanBy}
          type="datetime-local"
          required
          value={scanBy}
          {...faulty("scanBy")}
          onInput={(event) => setScanBy(event.currentTarget.value)}
        />
      </label>
      {problem !== null && (
        <p class="problem" role="alert" id="invitation-problem">
          {problem.text}
        </p>
      )}
      <button type="submit" class="primary" aria-disabled={isBusy}>
        {isBusy ? "Working…" : "Create invitation"}
      </button>
    </form>
  );
}
