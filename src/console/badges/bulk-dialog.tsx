import { useState } from "preact/hooks";
import type { ListedBadge } from "../../client/index.ts";
import { DoorsKnow } from "../doors/doors-know.tsx";
import { useDoorCounts } from "../doors/knowing.ts";
import { ConfirmDialog, Stopped } from "../parts/confirm-dialog.tsx";
import { eachOf } from "../parts/each-of.ts";
import { useSession } from "../parts/hooks.ts";
import { Plainly } from "../parts/identity.tsx";
import { type Notice, useNotify } from "../parts/notice.tsx";
import { useSettings } from "../parts/settings.ts";
import { count, counted, Digits } from "../parts/texts.tsx";
import { UntilField } from "../parts/until-field.tsx";
import { type BulkOutcome, type BulkStep, takeBulkStep, undoBulkStep } from "./bulk-step.ts";
import { doorsAfterEnd } from "./doors.ts";

const TITLES: Readonly<Record<BulkStep, string>> = {
  extend: "Change the end of",
  suspend: "Suspend",
  revoke: "Revoke",
};

/** For one badge, and for several. */
const DONE: Readonly<Record<BulkStep, readonly [string, string]>> = {
  extend: ["has a new end", "have a new end"],
  suspend: ["is suspended", "are suspended"],
  revoke: ["is revoked", "are revoked"],
};

/** Asks before it changes many badges, and says how that ended for each. Closed meanwhile, it changes no further badge. */
export function BulkDialog(props: {
  step: BulkStep;
  badges: readonly ListedBadge[];
  onDone: () => void;
  onClose: (hasActed: boolean) => void;
}) {
  const { step, badges, onDone, onClose } = props;
  const notify = useNotify();
  const doors = useDoorCounts();
  const session = useSession();
  const application = useSettings();
  const [end, setEnd] = useState<string | null>(null);
  const [outcomes, setOutcomes] = useState<readonly BulkOutcome[] | null>(null);
  const act = async (reason: string | undefined, closed: AbortSignal): Promise<Notice | null> => {
    const found: BulkOutcome[] = [];
    setOutcomes([]);
    const takeStep = async (badge: ListedBadge) => {
      found.push(await takeBulkStep(session, badge, { step, end, reason }));
      setOutcomes([...found]);
    };
    await eachOf(badges, takeStep, closed);
    if (closed.aborted) onDone();
    else if (found.some(({ isDone }) => !isDone)) throw new Stopped();
    return doneNotice(found);
  };
  const doneNotice = (found: readonly BulkOutcome[]): Notice => {
    const done = found.filter(({ isDone }) => isDone).length;
    const which = done === badges.length ? count(done) : `${count(done)} of ${count(badges.length)}`;
    const [is, are] = DONE[step];
    return {
      text: `${which} ${badges.length === 1 ? `badge ${is}` : `badges ${are}`}.`,
      ...(done < badges.length && { tone: "warning" }),
      ...(found.some((outcome) => outcome.undo) && { undo: () => undo(found) }),
      ...(step !== "extend" && application.statusList && { more: DoorsKnow }),
    };
  };
  const undo = async (some: readonly BulkOutcome[]): Promise<Notice> => {
    const { undone, left, failed } = await undoBulkStep(some);
    onDone();
    if (left + failed.length === 0)
      return { text: `Undone: ${counted(undone, "badge is as it was", "badges are as they were")}.` };
    const parts = [
      `Undone for ${counted(undone, "badge")}`,
      left > 0 &&
        `${counted(left, "badge was", "badges were")} left alone, because somebody has changed ${left === 1 ? "it" : "them"} since`,
      failed.length > 0 && `${counted(failed.length, "badge")} could not be changed`,
    ];
    const text = `${parts.filter(Boolean).join("; ")}.`;
    if (failed.length === 0) return { text, tone: "warning" };
    return { text, tone: "bad", label: "Try again", undo: () => undo(failed) };
  };
  const close = () => {
    // The dialog stayed open to name the badges that were left alone, so no notice has named the others yet.
    if (isOver && outcomes.some(({ isDone }) => isDone) && outcomes.some(({ isDone }) => !isDone))
      notify(doneNotice(outcomes));
    onClose(outcomes !== null);
  };
  const isOver = outcomes !== null && outcomes.length === badges.length;
  return (
    <ConfirmDialog
      title={`${TITLES[step]} ${counted(badges.length, "badge")}`}
      action={isOver ? null : `${TITLES[step]} ${counted(badges.length, "badge")}`}
      isFinal={step === "revoke"}
      act={act}
      onClose={close}
    >
      {outcomes === null ? (
        <>
          <ul class="chosen">
            {badges.map(({ id, userId, name }) => (
              <li key={id}>
                <Plainly text={name ?? userId} /> · <Digits value={id} />
              </li>
            ))}
          </ul>
          {step === "extend" ? <UntilField onUntil={setEnd} /> : <p>{doorsAfterEnd(application, doors)}</p>}
          {step === "revoke" && <p>These badges end for good. This cannot be undone.</p>}
          <p class="hint">A badge that somebody has changed since it was listed is left alone.</p>
        </>
      ) : (
        <Outcomes outcomes={outcomes} of={badges.length} />
      )}
    </ConfirmDialog>
  );
}

function Outcomes({ outcomes, of }: { outcomes: readonly BulkOutcome[]; of: number }) {
  const done = outcomes.filter(({ isDone }) => isDone).length;
  return (
    <>
      <p role="status">
        {outcomes.length < of
          ? `${outcomes.length} of ${counted(of, "badge")}…`
          : `Done for ${done} of ${counted(of, "badge")}.`}
      </p>
      <ul class="chosen">
        {outcomes
          .toSorted((one, other) => Number(one.isDone) - Number(other.isDone))
          .map(({ badge, isDone, text }) => (
            <li key={badge.id} class={isDone ? undefined : "not-done"}>
              <Plainly text={badge.name ?? badge.userId} /> · <Digits value={badge.id} />: {text}
            </li>
          ))}
      </ul>
    </>
  );
}
