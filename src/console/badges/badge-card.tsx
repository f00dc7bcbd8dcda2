import { useState } from "preact/hooks";
import { Action, Opener } from "../parts/action.tsx";
import { Ask } from "../parts/ask.tsx";
import { useKnown, useSession } from "../parts/hooks.ts";
import type { Notice } from "../parts/notice.tsx";
import { Chip, Digits, Field, When } from "../parts/texts.tsx";
import { BADGE_STATE_WORDS, BADGE_TONES } from "../words.ts";
import { BADGE_STEPS, type BadgeStep } from "./badge-steps.tsx";
import { changeBadge, endSentence, restoredSentence } from "./change-badge.ts";
import { EndDialog } from "./end-dialog.tsx";

/**
 * A badge with what can be done with it.
 *
 * @param id of a badge that the session knows
 * @param heading by what it stands under
 * @param onUser absent where the user's own card is shown
 */
export function BadgeCard(props: { id: string; heading?: "h2" | "h3"; onUser?: (userId: string) => void }) {
  const { id, heading: Heading = "h2", onUser } = props;
  const session = useSession();
  const badge = useKnown().badge(id);
  const [asking, setAsking] = useState<BadgeStep | "end" | null>(null);
  if (badge === undefined) return null;
  const { state, userId, metadata, expiresAt } = badge;
  const about = [id, userId];

  const act = async ({ act: step, done, undo }: BadgeStep): Promise<Notice> => {
    const changed = await changeBadge(session, id, (server) => step(server, badge));
    if (undo === undefined) return { text: done(changed), about };
    return {
      text: done(changed),
      about,
      undo: async () => {
        const restored = await changeBadge(session, id, (server) => undo.act(server, badge));
        return { text: undo.done(restored), about };
      },
    };
  };
  const setEnd = async (end: Date | null): Promise<Notice> => {
    const changed = await changeBadge(session, id, (server) => server.setBadgeEnd(id, end));
    return {
      text: endSentence(changed),
      about,
      undo: async () => {
        const restored = await changeBadge(session, id, (server) => server.setBadgeEnd(id, expiresAt ?? null));
        return { text: restoredSentence(changed, restored), about };
      },
    };
  };

  const steps = BADGE_STEPS.filter(
    ({ from, isOffered }) => from.includes(state) && (isOffered?.(badge, session.application) ?? true),
  );
  const device = [metadata?.deviceModel, metadata?.os, metadata?.osVersion].filter(Boolean).join(" · ");
  return (
    <article class="card card-row" aria-label={`Badge ${id}`} data-about={id}>
      <div class="card-head">
        <Heading>
          <Digits value={id} />
        </Heading>
        <Chip tone={BADGE_TONES[state]}>{BADGE_STATE_WORDS[state]}</Chip>
      </div>
      <dl class="fields">
        <Field label="User">
          {onUser === undefined ? (
            <span class="user-id">{userId}</span>
          ) : (
            <button type="button" class="link user-id" onClick={() => onUser(userId)}>
              {userId}
            </button>
          )}
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
              <Action key={step.label} label={step.label} about={id} act={() => act(step)} />
            ) : (
              <Opener
                key={step.label}
                label={step.label}
                about={id}
                isFinal={step.isFinal}
                onOpen={() => setAsking(step)}
              />
            ),
          )}
          <Opener label="Set end" about={id} onOpen={() => setAsking("end")} />
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
