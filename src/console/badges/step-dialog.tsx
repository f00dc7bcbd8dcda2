import { useState } from "preact/hooks";
import type { Badge, CurrentBadge } from "../../client/index.ts";
import { DoorsKnow } from "../doors/doors-know.tsx";
import { useDoorCounts } from "../doors/knowing.ts";
import { ConfirmDialog, Stopped } from "../parts/confirm-dialog.tsx";
import { useLoaded, useSession } from "../parts/hooks.ts";
import { Plainly } from "../parts/identity.tsx";
import type { Notice } from "../parts/notice.tsx";
import { useSettings } from "../parts/settings.ts";
import { Show } from "../parts/states.tsx";
import { Digits, grouped } from "../parts/texts.tsx";
import { TimesFields, type WantedTimes } from "../parts/times-fields.tsx";
import type { Session } from "../session.ts";
import { isConflict, meanwhile, readPresent } from "./meanwhile.ts";
import { type BadgeStep, stepsOf, timesOf } from "./steps.ts";

/**
 * Asks before it changes a badge. It reads the badge first, and changes only what it shows: if a colleague changes the badge
 * meanwhile, the dialog says so and lets the user choose.
 */
export function StepDialog(props: {
  id: string;
  step: BadgeStep;
  /** `changedAt` of the badge as the user saw it. */
  seenAt: string | undefined;
  onDone: () => void;
  onClose: () => void;
}) {
  const { id, step, seenAt, onDone, onClose } = props;
  const session = useSession();
  const application = useSettings();
  const doors = useDoorCounts();
  const present = useLoaded(() => readPresent(session, id), id);
  const [wanted, setWanted] = useState<WantedTimes | null>(null);
  const badge = present.value?.badge;
  const isPossible = badge === undefined || stepsOf(badge, application).includes(step);
  const hasChanged = badge !== undefined && seenAt !== undefined && badge.changedAt !== seenAt;

  const act = async (reason: string | undefined, closed: AbortSignal): Promise<Notice> => {
    if (badge === undefined) throw new Stopped();
    const times = wanted?.read() ?? timesOf(badge);
    try {
      const changed = await session.run((server) => step.act(server, badge, { reason, ifChange: badge.change }, times));
      onDone();
      const more = step.isForDoors && application.statusList ? DoorsKnow : undefined;
      return { ...doneNotice(session, step, badge, changed, { onDone, more }), more };
    } catch (error) {
      if (!isConflict(error) || closed.aborted) throw error;
      present.reload();
      throw new Stopped();
    }
  };
  const action = hasChanged && !step.isFinal ? `${step.action} anyway` : step.action;
  return (
    <ConfirmDialog
      title={`${step.label}: badge ${grouped(id)}`}
      action={badge !== undefined && isPossible ? action : null}
      isFinal={step.isFinal ?? false}
      act={act}
      onClose={onClose}
    >
      <Show loaded={present} what="the badge">
        {(now) => (
          <>
            <p>
              <Plainly text={now.badge.name ?? now.badge.userId} /> · number <Digits value={id} />
            </p>
            {hasChanged && (
              <p class="problem" role="alert">
                {meanwhile(now)}
              </p>
            )}
            {!isPossible && !hasChanged && <p class="problem">{meanwhile(now)}</p>}
            {isPossible && step.explain(application, doors).map((sentence) => <p key={sentence}>{sentence}</p>)}
            {isPossible && step.asksTimes && (
              <TimesFields key={now.badge.changedAt} times={timesOf(now.badge)} onWanted={setWanted} />
            )}
          </>
        )}
      </Show>
    </ConfirmDialog>
  );
}

/** The notice after a change. Its undo is as careful: it says so if somebody has changed the badge since. */
function doneNotice(
  session: Session,
  step: BadgeStep,
  before: Badge,
  changed: CurrentBadge,
  { onDone, more }: { onDone: () => void; more: Notice["more"] },
): Notice {
  const { undo, done } = step;
  if (undo === undefined) return { text: done(changed) };
  const undoFrom =
    (change: number | undefined): Notice["undo"] =>
    async () => {
      try {
        await session.run((server) => undo(server, before, { ifChange: change }));
        return { text: `Undone: badge ${grouped(before.id)} is as it was.`, more };
      } catch (error) {
        if (!isConflict(error)) throw error;
        const present = await readPresent(session, before.id);
        const notUndone: Notice = { text: `Not undone. ${meanwhile(present)}`, tone: "warning" };
        const isOver = present.badge.state === "revoked" || present.badge.state === "replaced";
        return isOver ? notUndone : { ...notUndone, label: "Undo anyway", undo: undoFrom(present.badge.change) };
      } finally {
        onDone();
      }
    };
  return { text: done(changed), undo: undoFrom(changed.change) };
}
