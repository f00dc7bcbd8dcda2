import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ListedInvitation } from "../../client/index.ts";
import { Ask } from "../parts/ask.tsx";
import { csvOf, saveFile } from "../parts/csv.ts";
import { type OpenList, pagesOf, useList, useLoaded, useSession } from "../parts/hooks.ts";
import { Plainly } from "../parts/identity.tsx";
import { Menu } from "../parts/menu.tsx";
import { goTo, hrefOf } from "../parts/route.ts";
import { Title } from "../parts/states.tsx";
import { ACTIONS, type Column, Filters, Table } from "../parts/table.tsx";
import { Chip, counted, Digits, grouped, When } from "../parts/texts.tsx";
import { INVITATION_STATE_WORDS, INVITATION_TONES } from "../words.ts";
import { type Invited, InviteForm } from "./invite.tsx";
import { linkOf, Pass, PassActions } from "./pass.tsx";

const PER_PAGE = 100;
const STATES = ["pending", "claimed", "revoked", "expired"] as const;

/** Invites visitors, and lists and revokes invitations. */
export function Visitors({ params }: { params: Readonly<Record<string, string>> }) {
  const session = useSession();
  const state = STATES.find((each) => each === params.state);
  const [invited, setInvited] = useState(session.invited);
  const show = (made: Invited | null) => {
    session.invited = made;
    setInvited(made);
  };
  const [revoking, setRevoking] = useState<{ badgeId: string; name: string | undefined } | null>(null);
  const [revoked, setRevoked] = useState<ReadonlySet<string>>(new Set());
  const open =
    (perPage: number): OpenList<ListedInvitation> =>
    (server, signal) =>
      pagesOf(server.listInvitations({ perPage, signal, ...(state && { state }) }), ({ invitations }) => invitations);
  const list = useList(open(PER_PAGE), state ?? "");
  const statistics = useLoaded((server, signal) => server.getStatistics({ signal }));
  const mayInvite = session.may("invite");
  const columns: readonly Column<ListedInvitation>[] = [
    {
      title: "Visitor",
      isName: true,
      cell: ({ name, userId }) => (
        <>
          {name === undefined ? <span class="hint">no name</span> : <Plainly text={name} />}
          {userId !== undefined && (
            <span class="second">
              <a href={hrefOf("person", { user: userId })}>
                <Plainly text={userId} />
              </a>
            </span>
          )}
        </>
      ),
      csv: ({ name = "" }) => name,
    },
    { title: "User ID", csv: ({ userId = "" }) => userId },
    {
      title: "Number",
      cell: ({ badgeId, state: its }) =>
        its === "claimed" ? (
          <a href={hrefOf("badge", { id: badgeId })}>
            <Digits value={badgeId} />
          </a>
        ) : (
          <Digits value={badgeId} />
        ),
      csv: ({ badgeId }) => badgeId,
    },
    {
      title: "State",
      cell: ({ state: its }) => <Chip tone={INVITATION_TONES[its]}>{INVITATION_STATE_WORDS[its]}</Chip>,
      csv: ({ state: its }) => INVITATION_STATE_WORDS[its],
    },
    {
      title: "From",
      cell: ({ badgeStartsAt }) =>
        badgeStartsAt === undefined ? <span class="hint">at once</span> : <When at={badgeStartsAt} />,
      csv: ({ badgeStartsAt = "" }) => badgeStartsAt,
    },
    {
      title: "Until",
      cell: ({ badgeExpiresAt }) =>
        badgeExpiresAt === undefined ? <span class="hint">no end</span> : <When at={badgeExpiresAt} />,
      csv: ({ badgeExpiresAt = "" }) => badgeExpiresAt,
    },
    { title: "Scan by", cell: ({ expiresAt }) => <When at={expiresAt} />, csv: ({ expiresAt }) => expiresAt },
    { title: "Invited", cell: ({ createdAt }) => <When at={createdAt} />, csv: ({ createdAt }) => createdAt },
    {
      title: ACTIONS,
      cell: ({ badgeId, name, state: its }) => (
        <Menu
          of={`invitation ${badgeId}, ${name ?? "no name"}`}
          items={[
            { label: "History", onChoose: () => goTo("history", { badge: badgeId }) },
            ...(its === "pending" && mayInvite
              ? [{ label: "Revoke…", isFinal: true, onChoose: () => setRevoking({ badgeId, name }) }]
              : []),
          ]}
        />
      ),
    },
  ];
  const revoke = async (reason: string | undefined) => {
    if (revoking === null) return null;
    const { badgeId, name } = revoking;
    await session.run((server) => server.revokeInvitation(badgeId, { reason }));
    setRevoked((before) => new Set([...before, badgeId]));
    list.reload();
    return { text: `The invitation of ${name ?? `number ${grouped(badgeId)}`} is revoked.` };
  };
  // A colleague may have revoked what stands on this screen.
  useEffect(() => {
    const ended = list.items.filter(({ state: its }) => its === "revoked").map(({ badgeId }) => badgeId);
    if (ended.some((id) => !revoked.has(id))) setRevoked(new Set([...revoked, ...ended]));
  }, [list.items]);
  return (
    <>
      <Title>Visitors</Title>
      {mayInvite && (
        <section aria-label="Invite" class="invite-place">
          {invited === null ? (
            <InviteForm
              onInvited={(made) => {
                show(made);
                list.reload();
              }}
            />
          ) : (
            <Passes invited={invited} revoked={revoked} onRevoke={setRevoking} onDone={() => show(null)} />
          )}
        </section>
      )}
      <Filters
        label="States"
        choices={[
          { title: "All", href: hrefOf("visitors"), isChosen: state === undefined },
          ...STATES.map((each) => ({
            title: INVITATION_STATE_WORDS[each],
            href: hrefOf("visitors", { state: each }),
            isChosen: state === each,
            count: statistics.value?.invitations[each],
          })),
        ]}
      />
      <Table
        noun="invitations"
        list={list}
        columns={columns}
        keyOf={({ badgeId, createdAt }) => `${badgeId} ${createdAt}`}
        open={open(1000)}
        empty={state === undefined ? "Nobody has been invited yet." : "No invitation is in this state."}
      />
      {revoking !== null && (
        <Ask
          title={`Revoke the invitation of ${revoking.name ?? `number ${grouped(revoking.badgeId)}`}?`}
          action="Revoke invitation"
          isFinal
          act={revoke}
          onClose={() => setRevoking(null)}
        >
          <p>Its code gives nobody a badge any more, and the number becomes free again.</p>
          <p>This cannot be undone. You can create another invitation.</p>
        </Ask>
      )}
    </>
  );
}

/** What was just made. The codes are shown only now. */
function Passes(props: {
  invited: Invited;
  revoked: ReadonlySet<string>;
  onRevoke: (invitation: { badgeId: string; name: string | undefined }) => void;
  onDone: () => void;
}) {
  const { invited, revoked, onRevoke, onDone } = props;
  const { passes, refused } = invited;
  const { application } = useSession();
  const heading = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => heading.current?.focus(), []);
  useEffect(() => {
    // The codes would be lost. The browser asks in words of its own.
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, []);
  const [only] = passes;
  const isOne = passes.length === 1 && refused.length === 0;
  const save = () => {
    const rows = passes.map(({ invitation, host }) => [
      invitation.name ?? "",
      host,
      invitation.badgeId,
      linkOf(application.invitationLink, invitation.id),
    ]);
    saveFile("visitors.csv", csvOf(["Visitor", "Host", "Number", application.invitationLink ? "Link" : "Code"], rows));
  };
  return (
    <>
      <p ref={heading} tabIndex={-1} class="note no-print">
        {counted(passes.length, "pass", "passes")}. <strong>The code is shown only now:</strong> print, copy, share or
        mail it before you close this.
      </p>
      {refused.length > 0 && (
        <div class="problem no-print" role="alert">
          <p>{counted(refused.length, "visitor")} could not be invited:</p>
          <ul>
            {refused.map(({ name, why }, place) => (
              <li key={place}>
                {name}: {why}
              </li>
            ))}
          </ul>
        </div>
      )}
      {isOne && only ? (
        <>
          <PassActions
            pass={only}
            onRevoke={() => onRevoke({ badgeId: only.invitation.badgeId, name: only.invitation.name })}
            onDone={onDone}
          />
          <div class="passes">
            <Pass pass={only} isRevoked={revoked.has(only.invitation.badgeId)} />
          </div>
        </>
      ) : (
        <>
          <div class="actions no-print">
            <button type="button" class="primary" onClick={() => print()}>
              Print all
            </button>
            <button type="button" onClick={save}>
              Save names and codes as CSV
            </button>
            <button type="button" onClick={onDone}>
              Done
            </button>
          </div>
          <div class="passes">
            {passes.map((pass) => (
              <Pass key={pass.invitation.badgeId} pass={pass} isRevoked={revoked.has(pass.invitation.badgeId)} />
            ))}
          </div>
        </>
      )}
    </>
  );
}
