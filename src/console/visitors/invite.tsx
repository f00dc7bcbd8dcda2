import { useRef, useState } from "preact/hooks";
import type { Invitation, InvitationToMake } from "../../client/index.ts";
import { useSession } from "../parts/hooks.ts";
import { explain, explainCode } from "../parts/problems.ts";
import { TimesFields, type WantedTimes } from "../parts/times-fields.tsx";
import { randomHex, SessionEnded } from "../session.ts";
import { type Guest, readGuests } from "./guests.ts";
import type { NewPass } from "./pass.tsx";

const KEY_RANDOM_BYTES = 16;
const DAY_MILLISECONDS = 24 * 3600 * 1000;
/** Of a visit without an end; the longest is 365 days (contract section 5). */
const CODE_DAYS = 7;
const LONGEST_CODE_DAYS = 364;

/** What came of a list of visitors: passes, and those who were refused, with the reason. */
export interface Invited {
  passes: NewPass[];
  refused: { name: string; why: string }[];
}

/** Invites one visitor, or those of a pasted list. */
export function InviteForm({ onInvited }: { onInvited: (invited: Invited) => void }) {
  const session = useSession();
  const [isMany, setMany] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [wanted, setWanted] = useState<WantedTimes | null>(null);
  const [first] = useState(() => ({ startsAt: null, expiresAt: endOfDay(new Date()).toISOString() }));
  const fields = {
    name: useRef<HTMLInputElement>(null),
    host: useRef<HTMLInputElement>(null),
    userId: useRef<HTMLInputElement>(null),
    list: useRef<HTMLTextAreaElement>(null),
  };
  /** Of what is being asked for: another try after a lost response gets the same invitations. */
  const attempt = useRef<{ form: string; key: string; wishes: InvitationToMake[] } | null>(null);

  const readForm = (): { guests: Guest[]; problem: string | null } => {
    if (isMany) return readGuests(fields.list.current?.value ?? "");
    const [name = "", host = "", userId = ""] = [fields.name, fields.host, fields.userId].map((field) =>
      field.current?.value.trim(),
    );
    return { guests: [{ name, host, userId }], problem: null };
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy || wanted === null) return;
    const { guests, problem: found } = readForm();
    const { startsAt, expiresAt } = wanted.read();
    if (found !== null) return setProblem(found);
    if (expiresAt !== null && Date.parse(expiresAt) <= Date.now())
      return setProblem("“Until” has passed. Choose a later time.");
    setProblem(null);
    setBusy(true);
    const form = JSON.stringify([guests, startsAt, expiresAt]);
    if (attempt.current?.form !== form) {
      attempt.current = { form, key: randomHex(KEY_RANDOM_BYTES), wishes: wishesOf(guests, startsAt, expiresAt) };
    }
    const { key: idempotencyKey, wishes } = attempt.current;
    try {
      const made = await session.run((server, signal) =>
        server.createInvitations(wishes, { udid: session.udid, idempotencyKey, signal }),
      );
      attempt.current = null;
      const passes: NewPass[] = [];
      const refused: Invited["refused"] = [];
      for (const [place, result] of made.entries()) {
        const { name = "", host = "" } = guests[place] ?? {};
        if ("error" in result) refused.push({ name, why: explainCode(result.error) });
        else passes.push({ invitation: withWish(result, wishes[place]), host });
      }
      onInvited({ passes, refused });
    } catch (error) {
      if (!(error instanceof SessionEnded)) setProblem(explain(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="invite" onSubmit={submit}>
      {isMany ? (
        <label>
          Visitors, one on each line: name, host, user ID{" "}
          <span class="hint">
            (copied from a spreadsheet, or separated by semicolons; host and user ID may be missing)
          </span>
          <textarea ref={fields.list} rows={8} required placeholder={"Ann Lee\tTom Berg\nBob Ray\tTom Berg"} />
        </label>
      ) : (
        <div class="form-row">
          <label>
            Visitor's name
            <input ref={fields.name} required maxLength={100} autocomplete="off" />
          </label>
          <label>
            Host <span class="hint">(printed on the pass; not kept)</span>
            <input ref={fields.host} autocomplete="off" />
          </label>
          <label>
            User ID <span class="hint">(if only this user may claim it)</span>
            <input ref={fields.userId} maxLength={255} autocomplete="off" autocapitalize="off" spellcheck={false} />
          </label>
        </div>
      )}
      <TimesFields times={first} onWanted={setWanted} />
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <div class="actions">
        <button type="submit" class="primary" aria-disabled={isBusy}>
          {isBusy ? "Working…" : isMany ? "Invite all" : "Invite"}
        </button>
        <button type="button" class="quiet" onClick={() => setMany(!isMany)}>
          {isMany ? "Invite one visitor" : "Invite up to 100 from a list"}
        </button>
      </div>
    </form>
  );
}

/** 18:00, or midnight for who invites in the evening. */
function endOfDay(now: Date): Date {
  const evening = new Date(now.getFullYear(), now.getMonth(), now.getDate(), 18);
  return evening > now ? evening : new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1);
}

function wishesOf(guests: readonly Guest[], startsAt: string | null, expiresAt: string | null): InvitationToMake[] {
  const scanBy = codeEnd(startsAt, expiresAt);
  return guests.map(({ name, userId }) => ({
    expiresAt: scanBy,
    badgeStartsAt: startsAt ?? undefined,
    badgeExpiresAt: expiresAt ?? undefined,
    name,
    userId: userId || undefined,
  }));
}

/** Until when the code can be scanned: until the visit ends, within what the service accepts. */
function codeEnd(startsAt: string | null, expiresAt: string | null): Date {
  const latest = Date.now() + LONGEST_CODE_DAYS * DAY_MILLISECONDS;
  const wanted = expiresAt ?? new Date(Date.parse(startsAt ?? new Date().toISOString()) + CODE_DAYS * DAY_MILLISECONDS);
  return new Date(Math.min(latest, new Date(wanted).getTime()));
}

/** The service need not send back what it was sent. */
function withWish(invitation: Invitation, wish: InvitationToMake | undefined): Invitation {
  const text = (time: string | Date | undefined) => (time instanceof Date ? time.toISOString() : time);
  return {
    name: wish?.name,
    badgeStartsAt: text(wish?.badgeStartsAt),
    badgeExpiresAt: text(wish?.badgeExpiresAt),
    ...invitation,
  };
}
