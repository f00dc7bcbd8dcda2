import type { ListedInvitation } from "../../client/index.ts";
import { Plainly } from "../parts/identity.tsx";
import { Menu } from "../parts/menu.tsx";
import { goTo, hrefOf } from "../parts/route.ts";
import { ACTIONS, type Column } from "../parts/table.tsx";
import { Chip, Digits, When } from "../parts/texts.tsx";
import { INVITATION_STATE_WORDS, INVITATION_TONES } from "../words.ts";

/** An invitation to revoke: one with its token, or a listed one, whose number may already be another visitor's. */
export type Revocable = Pick<ListedInvitation, "badgeId" | "name"> & ({ token: string } | { createdAt: string });

/** The columns of a list of invitations. */
export const invitationColumns = (
  mayInvite: boolean,
  onRevoke: (invitation: Revocable) => void,
): Column<ListedInvitation>[] => [
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
    cell: ({ badgeId, name, createdAt, state: its }) => (
      <Menu
        of={`invitation ${badgeId}, ${name ?? "no name"}`}
        items={[
          { label: "History", onChoose: () => goTo("history", { badge: badgeId }) },
          ...(its === "pending" && mayInvite
            ? [{ label: "Revoke…", isFinal: true, onChoose: () => onRevoke({ badgeId, name, createdAt }) }]
            : []),
        ]}
      />
    ),
  },
];
