import { useState } from "preact/hooks";
import type { InvitationPage, InvitationState, ListedInvitation } from "../../client/index.ts";
import { Opener } from "../parts/action.tsx";
import { Ask } from "../parts/ask.tsx";
import { Filter } from "../parts/filter.tsx";
import { usePages, useSession } from "../parts/hooks.ts";
import { type Notice, useNotices } from "../parts/notice.tsx";
import { Rows, Title } from "../parts/states.tsx";
import { Chip, Digits, Field, grouped, When } from "../parts/texts.tsx";
import { INVITATION_STATE_WORDS, INVITATION_TONES } from "../words.ts";
import { NewInvitation } from "./new-invitation.tsx";

const PER_PAGE = 50;

type Choice = "all" | InvitationState;

const CHOICE_WORDS: Readonly<Record<Choice, string>> = { all: "All", ...INVITATION_STATE_WORDS };

/** Creates, lists and revokes invitations. */
export function Invitations() {
  const { dismiss } = useNotices();
  const [choice, setChoice] = useState<Choice>("all");
  const list = usePages<ListedInvitation, InvitationPage>(
    (server, signal) =>
      server.listInvitations({ perPage: PER_PAGE, signal, ...(choice !== "all" && { state: choice }) }),
    ({ invitations }) => invitations,
    choice,
  );
  const choose = (chosen: Choice) => {
    dismiss();
    setChoice(chosen);
  };
  return (
    <>
      <Title>Invitations</Title>
      <NewInvitation onCreated={list.reload} />
      <section aria-labelledby="invitations-so-far">
        <div class="section-head">
          <h2 id="invitations-so-far">Invitations so far</h2>
          <Filter words={CHOICE_WORDS} value={choice} onChange={choose} />
        </div>
        <Rows
          list={list}
          what="invitations"
          keyOf={({ badgeId, createdAt }) => `${badgeId} ${createdAt}`}
          empty={choice === "all" ? "Nobody has been invited yet." : "No invitation is in this state."}
        >
          {(invitation) => <InvitationCard invitation={invitation} onRevoked={list.reload} />}
        </Rows>
      </section>
    </>
  );
}

function InvitationCard({ invitation, onRevoked }: { invitation: ListedInvitation; onRevoked: () => void }) {
  const session = useSession();
  const [isAsking, setAsking] = useState(false);
  const { badgeId, state, createdAt, expiresAt, badgeExpiresAt, userId } = invitation;
  const revoke = async (): Promise<Notice> => {
    await session.run((server, signal) => server.revokeInvitation(badgeId, { signal }));
    onRevoked();
    return { text: `The invitation to number ${grouped(badgeId)} is revoked.`, about: [badgeId] };
  };
  return (
    <article class="card card-row" aria-label={`Invitation to number ${badgeId}`} data-about={badgeId}>
      <div class="card-head">
        <h3>
          <Digits value={badgeId} />
        </h3>
        <Chip tone={INVITATION_TONES[state]}>{INVITATION_STATE_WORDS[state]}</Chip>
      </div>
      <dl class="fields">
        {userId !== undefined && (
          <Field label="Claimed by">
            <span class="user-id">{userId}</span>
          </Field>
        )}
        <Field label="Created">
          <When at={createdAt} />
        </Field>
        <Field label="Scan by">
          <When at={expiresAt} />
        </Field>
        <Field label="Badge ends">{badgeExpiresAt === undefined ? "No end" : <When at={badgeExpiresAt} />}</Field>
      </dl>
      {state === "pending" && (
        <div class="actions">
          <Opener label="Revoke" about={badgeId} isFinal onOpen={() => setAsking(true)} />
        </div>
      )}
      {isAsking && (
        <Ask
          title={`Revoke the invitation to number ${grouped(badgeId)}?`}
          action="Revoke invitation"
          isFinal
          act={revoke}
          onClose={() => setAsking(false)}
        >
          <p>Its code no longer gives anybody a badge, and the number becomes free again.</p>
          <p>
            <strong>This cannot be undone.</strong> You can create another invitation.
          </p>
        </Ask>
      )}
    </article>
  );
}
