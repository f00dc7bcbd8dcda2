import { useState } from "preact/hooks";
import { type Badge, BadgeServiceError, type ServerClient } from "../../client/index.ts";
import { Action } from "../parts/action.tsx";
import { Ask } from "../parts/ask.tsx";
import { useSession } from "../parts/hooks.ts";
import { useNotify } from "../parts/notice.tsx";
import { Chip, Digits, Field, grouped, When } from "../parts/texts.tsx";
import { BADGE_STATE_WORDS, BADGE_TONES } from "../words.ts";
import { BADGE_STEPS, type BadgeStep } from "./badge-steps.tsx";
import { EndDialog } from "./end-dialog.tsx";

/** A badge with what can be done with it. @param heading by what it stands under */
export function BadgeCard({ badge: given, heading: Heading = "h2" }: { badge: Badge; heading?: "h2" | "h3" }) {
  const session = useSession();
  const notify = useNotify();
  const [badge, setBadge] = useState(given);
  const [asking, setAsking] = useState<BadgeStep | "end" | null>(null);

  /** Does a step. One that is too late shows the badge as it is now. */
  const change = async (step: (server: ServerClient) => Promise<Badge>) => {
    try {
      setBadge(await session.run(step));
    } catch (error) {
      if (error instanceof BadgeServiceError && error.status === 409) {
        setBadge(await session.run((server) => server.getBadge(badge.id)));
      }
      throw error;
    }
  };
  const act = async (step: BadgeStep) => {
    const { undo } = step;
    await change((server) => step.act(server, badge));
    notify({ text: step.done(badge), ...(undo && { undo: () => change((server) => undo(server, badge)) }) });
  };
  const setEnd = async (end: Date | null) => {
    const before = badge.expiresAt ?? null;
    await change((server) => server.setBadgeEnd(badge.id, end));
    const text =
      end === null ? `Badge ${grouped(badge.id)} has no end any more.` : `Badge ${grouped(badge.id)} has a new end.`;
    notify({ text, undo: () => change((server) => server.setBadgeEnd(badge.id, before)) });
  };

  const steps = BADGE_STEPS.filter(({ from }) => from.includes(badge.state));
  const { state, userId, metadata, expiresAt } = badge;
  const device = [metadata?.deviceModel, metadata?.os, metadata?.osVersion].filter(Boolean).join(" · ");
  return (
    <article class="card card-row" aria-label={`Badge ${badge.id}`}>
      <div class="card-head">
        <Heading>
          <Digits value={badge.id} />
        </Heading>
        <Chip tone={BADGE_TONES[state]}>{BADGE_STATE_WORDS[state]}</Chip>
      </div>
      <dl class="fields">
        <Field label="User">
          <span class="user-id">{userId}</span>
        </Field>
        {device !== "" && <Field label="Device">{device}</Field>}
        {metadata?.sdkVersion && <Field label="SDK">{metadata.sdkVersion}</Field>}
        {expiresAt !== undefined && (
          <Field label={state === "expired" ? "Ended" : "Ends"}>
            <When at={expiresAt} />
          </Field>
        )}
      </dl>
      {steps.length === 0 ? (
        <p class="hint">This badge has ended for good.</p>
      ) : (
        <div class="actions">
          {steps.map((step) =>
            step.question === undefined ? (
              <Action key={step.label} label={step.label} act={() => act(step)} />
            ) : (
              <button
                key={step.label}
                type="button"
                class={step.isFinal ? "final" : undefined}
                onClick={() => setAsking(step)}
              >
                {step.label}…
              </button>
            ),
          )}
          <button type="button" onClick={() => setAsking("end")}>
            Set end…
          </button>
        </div>
      )}
      {asking === "end" && <EndDialog badge={badge} act={setEnd} onClose={() => setAsking(null)} />}
      {asking !== null && asking !== "end" && asking.question !== undefined && (
        <Ask
          title={asking.question.title(badge)}
          action={`${asking.label} badge`}
          isFinal={asking.isFinal ?? false}
          act={() => act(asking)}
          onClose={() => setAsking(null)}
        >
          {asking.question.text(badge)}
        </Ask>
      )}
    </article>
  );
}
