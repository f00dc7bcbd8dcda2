import { useState } from "preact/hooks";
import type { InvitationPage, InvitationState, ListedInvitation } from "../../client/index.ts";
import { Ask } from "../parts/ask.tsx";
import { Filter } from "../parts/filter.tsx";
import { usePages, useSession } from "../parts/hooks.ts";
import { useNotify } from "../parts/notice.tsx";
import { Rows } from "../parts/states.tsx";
import { Chip, Digits, Field, grouped, When } from "../parts/texts.tsx";
import { INVITATION_STATE_WORDS, INVITATION_TONES } from "../words.ts";
import { NewInvitation } from "./new-invitation.tsx";

const PER_PAGE = 50;

/** Creates, lists and revokes invitations. */
export function Invitations() {
  const [state, setState] = useState<InvitationState | null>(null);
  const list = usePages<ListedInvitation, InvitationPage>(
    (server, signal) => server.listInvitations({ perPage: PER_PAGE, signal, ...(state !== null && { state }) }),
    ({ invitations }) => invitations,
    state ?? "",
  );
  return (
    <>
      <h1>Invitations</h1>
      <NewInvitation onCreated={list.reload} />
      <section aria-labelledby="invitations-so-far">
        <div class="section-head">
          <h2 id="invitations-so-far">Invitations so far</h2>
          <Filter words={INVITATION_STATE_WORDS} value={state} onChange={setState} />
        </div>
        <Rows
          list={list}
          what="invitations"
          keyOf={({ badgeId, createdAt }) => `${badgeId} ${createdAt}`}
          empty={state === null ? "Nobody has been invited yet." : "No invitation is in this state."}
        >
          {(invitation) => <InvitationCard invitation={invitation} onRevoked={list.reload} />}
        </Rows>
      </section>
    </>
  );
}

function InvitationCard({ invitation, onRevoked }: { invitation: ListedInvitation; onRevoked: () => void }) {
  const session = useSession();
  const notify = useNotify();
  const [isAsking, setAsking] = useState(false);
  const { badgeId, state, createdAt, expiresAt, badgeExpiresAt, userId } = invitation;
  const revoke = async () => {
    await session.run((server, signal) => server.revokeInvitation(badgeId, { signal }));
    notify({ text: `The invitation to number ${grouped(badgeId)} is revoked.` });
    onRevoked();
  };
  return (
    <article class="card card-row" aria-label={`Invitation to number ${badgeId}`}>
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
        <Field label="Valid until">
          <When at={expiresAt} />
        </Field>
        {badgeExpiresAt !== undefined && (
          <Field label="Badge ends">
            <When at={badgeExpiresAt} />
          </Field>
        )}
      </dl>
      {state === "pending" && (
        <div class="actions">
          <button type="button" class="final" onClick={() => setAsking(true)}>
            Revoke…
          </button>
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
