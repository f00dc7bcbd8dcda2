import { useState } from "preact/hooks";
import type { CurrentBadge } from "../../client/index.ts";
import { HistoryTable } from "../history/history.tsx";
import { useLoaded, useSession } from "../parts/hooks.ts";
import { Person } from "../parts/identity.tsx";
import { hrefOf } from "../parts/route.ts";
import { useSettings } from "../parts/settings.ts";
import { Empty, Show, Title } from "../parts/states.tsx";
import { Digits, Field, When } from "../parts/texts.tsx";
import { StateChip } from "./badge-columns.tsx";
import { StepDialog } from "./step-dialog.tsx";
import { type BadgeStep, stepsOf } from "./steps.ts";

/** Everything about a badge: its facts, its actions and its history. */
export function BadgePage({ params: { id = "" } }: { params: Readonly<Record<string, string>> }) {
  const isNumber = /^[1-9]\d{0,15}$/.test(id);
  return (
    <>
      <p class="back">
        <a href={hrefOf("badges")}>All badges</a>
      </p>
      <Title>Badge {isNumber ? <Digits value={id} /> : ""}</Title>
      {isNumber ? <Card key={id} id={id} /> : <Empty>That is not a badge number.</Empty>}
    </>
  );
}

function Card({ id }: { id: string }) {
  const session = useSession();
  const badge = useLoaded((server, signal) => server.getBadge(id, { signal }), id);
  /** `seenAt`: `changedAt` of the badge when the dialog was opened, because the page behind it reloads. */
  const [asking, setAsking] = useState<{ step: BadgeStep; seenAt: string } | null>(null);
  const [changes, setChanges] = useState(0);
  const refresh = () => {
    badge.reload();
    setChanges((times) => times + 1);
  };
  return (
    <Show loaded={badge} what="the badge">
      {(value) => (
        <>
          <Facts badge={value} />
          {session.may("change") && (
            <Steps badge={value} onStep={(step) => setAsking({ step, seenAt: value.changedAt })} />
          )}
          {asking !== null && <StepDialog id={id} {...asking} onDone={refresh} onClose={() => setAsking(null)} />}
          <h2>History</h2>
          <HistoryTable
            filter={{ badgeId: id }}
            version={changes}
            oldest={
              <>
                The badge was issued <When at={value.issuedAt} />.
              </>
            }
          />
        </>
      )}
    </Show>
  );
}

function Facts({ badge }: { badge: CurrentBadge }) {
  const { userId, name, state, metadata, startsAt, expiresAt, issuedAt, changedAt, keyThumbprint } = badge;
  const device = [metadata?.deviceModel, metadata?.os, metadata?.osVersion].filter(Boolean).join(" · ");
  return (
    <dl class="facts">
      <Field label="Person">
        <Person userId={userId} name={name} />
      </Field>
      <Field label="State">
        <StateChip badge={badge} />
      </Field>
      {startsAt !== undefined && (
        <Field label="Starts">
          <When at={startsAt} />
        </Field>
      )}
      <Field label={state === "expired" ? "Ended" : "Ends"}>
        {expiresAt === undefined ? "no end" : <When at={expiresAt} />}
      </Field>
      <Field label="Issued">
        <When at={issuedAt} />
      </Field>
      <Field label="Last change">{changedAt === issuedAt ? "none" : <When at={changedAt} />}</Field>
      {device !== "" && <Field label="Phone">{device}</Field>}
      {metadata?.sdkVersion && <Field label="App's SDK">{metadata.sdkVersion}</Field>}
      <Field label="Bound to the phone's key">{keyThumbprint === undefined ? "no" : "yes"}</Field>
    </dl>
  );
}

function Steps({ badge, onStep }: { badge: CurrentBadge; onStep: (step: BadgeStep) => void }) {
  const steps = stepsOf(badge, useSettings());
  if (steps.length === 0)
    return <p class="hint">This badge has ended for good. Only an invitation gives this phone another.</p>;
  return (
    <div class="actions">
      {steps.map((step) => (
        <button key={step.label} type="button" class={step.isFinal ? "final" : undefined} onClick={() => onStep(step)}>
          {step.label}…
        </button>
      ))}
    </div>
  );
}
