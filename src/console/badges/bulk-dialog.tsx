import { useState } from "preact/hooks";
import type { ListedBadge } from "../../client/index.ts";
import { DoorsKnow } from "../doors/doors-know.tsx";
import { Ask, Stopped } from "../parts/ask.tsx";
import { useSession } from "../parts/hooks.ts";
import { Plainly } from "../parts/identity.tsx";
import type { Notice } from "../parts/notice.tsx";
import { eachOf } from "../parts/pages.ts";
import { useSettings } from "../parts/settings.ts";
import { counted, Digits } from "../parts/texts.tsx";
import { UntilField } from "../parts/until-field.tsx";
import { type BulkOutcome, type BulkStep, takeBulkStep } from "./bulk-step.ts";
import { doorsAfterEnd } from "./doors.ts";

/** Calls at once: as many as a browser has open to one host, and one left over. */
const AT_ONCE = 4;

const TITLES: Readonly<Record<BulkStep, string>> = {
  extend: "Change the end of",
  suspend: "Suspend",
  revoke: "Revoke",
};

/** Asks before a step with many badges, takes it, and says how it ended for each. */
export function BulkDialog(props: {
  step: BulkStep;
  badges: readonly ListedBadge[];
  onClose: (hasActed: boolean) => void;
}) {
  const { step, badges, onClose } = props;
  const session = useSession();
  const application = useSettings();
  const [end, setEnd] = useState<string | null>(null);
  const [outcomes, setOutcomes] = useState<readonly BulkOutcome[] | null>(null);
  const act = async (reason: string | undefined): Promise<Notice | null> => {
    const found: BulkOutcome[] = [];
    setOutcomes([]);
    await eachOf(badges, AT_ONCE, async (badge) => {
      found.push(await takeBulkStep(session, badge, { step, end, reason }));
      setOutcomes([...found]);
    });
    if (found.some(({ isDone }) => !isDone)) throw new Stopped();
    const more = step !== "extend" && application.statusList ? DoorsKnow : undefined;
    return { text: `${TITLES[step]} ${counted(badges.length, "badge")}: done for all of them.`, more };
  };
  const isOver = outcomes !== null && outcomes.length === badges.length;
  return (
    <Ask
      title={`${TITLES[step]} ${counted(badges.length, "badge")}`}
      action={isOver ? null : `${TITLES[step]} ${counted(badges.length, "badge")}`}
      isFinal={step === "revoke"}
      act={act}
      onClose={() => onClose(outcomes !== null)}
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
          {step === "extend" ? <UntilField onUntil={setEnd} /> : <p>{doorsAfterEnd(application)}</p>}
          {step === "revoke" && <p>These badges end for good. This cannot be undone.</p>}
          <p class="hint">A badge that somebody has changed since it was listed is left alone.</p>
        </>
      ) : (
        <Outcomes outcomes={outcomes} of={badges.length} />
      )}
    </Ask>
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
