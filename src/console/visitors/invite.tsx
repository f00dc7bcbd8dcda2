import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSession } from "../parts/hooks.ts";
import { focusHeading, useNotify } from "../parts/notice.tsx";
import { explain } from "../parts/problems.ts";
import { TimesFields, type WantedTimes } from "../parts/times-fields.tsx";
import { SessionEnded } from "../session.ts";
import { type Guest, type ReadGuests, readGuests } from "./guests.ts";
import { Refused } from "./passes.tsx";
import { Preview } from "./preview.tsx";
import { type Attempt, type Invited, newAttempt, sendInvitations } from "./send-invitations.ts";

/** Two buttons that each open a form, so that the list of expected visitors is visible first. */
export function Invite() {
  const [open, setOpen] = useState<"one" | "list" | null>(null);
  const close = () => {
    setOpen(null);
    focusHeading();
  };
  if (open !== null) return <InviteForm isMany={open === "list"} onClose={close} />;
  return (
    <div class="actions">
      <button type="button" class="primary" onClick={() => setOpen("one")}>
        Invite a visitor
      </button>
      <button type="button" onClick={() => setOpen("list")}>
        Invite up to 100 from a list
      </button>
    </div>
  );
}

/**
 * Invites one visitor, or those of a pasted list, which is previewed with its times before it is sent. The form stays as it is
 * if nobody could be invited.
 */
function InviteForm({ isMany, onClose }: { isMany: boolean; onClose: () => void }) {
  const session = useSession();
  const notify = useNotify();
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [refused, setRefused] = useState<Invited["refused"]>([]);
  const [wanted, setWanted] = useState<WantedTimes | null>(null);
  const [preview, setPreview] = useState<readonly Guest[] | null>(null);
  const [first] = useState(() => ({ startsAt: null, expiresAt: endOfDay(new Date()).toISOString() }));
  const fields = {
    name: useRef<HTMLInputElement>(null),
    host: useRef<HTMLInputElement>(null),
    userId: useRef<HTMLInputElement>(null),
    list: useRef<HTMLTextAreaElement>(null),
  };
  const attempt = useRef<Attempt | null>(null);
  const [closing] = useState(() => new AbortController());
  useEffect(() => () => closing.abort(), [closing]);
  useLayoutEffect(() => (isMany ? fields.list : fields.name).current?.focus(), []);

  const readForm = (): ReadGuests => {
    const times = wanted?.read() ?? first;
    if (isMany) return readGuests(fields.list.current?.value ?? "", times, new Date());
    if (times.expiresAt !== null && Date.parse(times.expiresAt) <= Date.now())
      return { guests: null, problem: "“Until” has passed. Choose a later time." };
    const [name = "", host = "", userId = ""] = [fields.name, fields.host, fields.userId].map((field) =>
      field.current?.value.trim(),
    );
    return { guests: [{ name, host, userId, ...times }], problem: null };
  };
  const say = (text: string | null, who: Invited["refused"] = []) => {
    setProblem(text);
    setRefused(who);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const { guests, problem: found } = readForm();
    say(found);
    if (guests === null) return;
    if (isMany) return setPreview(guests);
    return void send(guests);
  };
  const send = async (guests: readonly Guest[]) => {
    if (isBusy) return;
    say(null);
    setBusy(true);
    if (JSON.stringify(attempt.current?.guests) !== JSON.stringify(guests)) attempt.current = newAttempt(guests);
    try {
      const { passes, refused: others } = await sendInvitations(session, attempt.current ?? newAttempt(guests));
      attempt.current = null;
      if (passes.length > 0) return;
      if (closing.signal.aborted)
        notify({ text: `Not invited: ${others.map(({ name, why }) => `${name}: ${why}`).join(" ")}`, tone: "bad" });
      else say(null, others);
    } catch (error) {
      if (error instanceof SessionEnded) return;
      if (closing.signal.aborted) notify({ text: explain(error), tone: "bad" });
      else say(explain(error));
    } finally {
      setBusy(false);
    }
  };
  const problemText = (
    <>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {refused.length > 0 && <Refused refused={refused} />}
    </>
  );
  return (
    <>
      {preview !== null && (
        <>
          <Preview
            guests={preview}
            isBusy={isBusy}
            onSend={() => void send(preview)}
            onBack={() => {
              setPreview(null);
              say(null);
              focusHeading();
            }}
          />
          {problemText}
        </>
      )}
      {/* Hidden, not removed, so that the pasted text stays. */}
      <form class="invite" onSubmit={submit} hidden={preview !== null}>
        {isMany ? <ListField field={fields.list} /> : <OneFields {...fields} />}
        <TimesFields times={first} pastHint="That time has passed: choose a later one." onWanted={setWanted} />
        {preview === null && problemText}
        <div class="actions">
          <button type="submit" class="primary" aria-disabled={isBusy}>
            {isBusy ? "Working…" : isMany ? "Check the list" : "Invite"}
          </button>
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </>
  );
}

type Field<Element> = { current: Element | null };

function ListField({ field }: { field: Field<HTMLTextAreaElement> }) {
  return (
    <label>
      Visitors, one on each line, below the names of the columns{" "}
      <span class="hint">
        (name, user, from, until, host, in any order; copied from a spreadsheet or separated by semicolons. Without
        “from” and “until” the times below apply.)
      </span>
      <textarea
        ref={field}
        rows={8}
        required
        placeholder={"Name\tFrom\tUntil\tHost\nAnn Lee\t2027-01-31 9:00\t2027-01-31 17:00\tTom Berg"}
      />
    </label>
  );
}

function OneFields(fields: {
  name: Field<HTMLInputElement>;
  host: Field<HTMLInputElement>;
  userId: Field<HTMLInputElement>;
}) {
  return (
    <div class="form-row">
      <label>
        Visitor's name
        <input ref={fields.name} required maxLength={100} autocomplete="off" />
      </label>
      <label>
        Host <span class="hint">(printed on the pass; not stored)</span>
        <input ref={fields.host} autocomplete="off" />
      </label>
      <label>
        User ID <span class="hint">(if only this user may claim it)</span>
        <input ref={fields.userId} maxLength={255} autocomplete="off" autocapitalize="off" spellcheck={false} />
      </label>
    </div>
  );
}

/** 18:00, or midnight in the evening. */
function endOfDay(now: Date): Date {
  const evening = new Date(now.getFullYear(), now.getMonth(), now.getDate(), 18);
  return evening > now ? evening : new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1);
}
