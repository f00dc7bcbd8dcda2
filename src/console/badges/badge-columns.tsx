import type { ListedBadge } from "../../client/index.ts";
import { actorWords } from "../history/action-names.ts";
import { useSession } from "../parts/hooks.ts";
import { Person, Plainly } from "../parts/identity.tsx";
import { Menu } from "../parts/menu.tsx";
import { goTo, hrefOf } from "../parts/route.ts";
import { useSettings } from "../parts/settings.ts";
import { ACTIONS, type Column } from "../parts/table.tsx";
import { Chip, Digits, shortTime, When } from "../parts/texts.tsx";
import { BADGE_STATE_WORDS, BADGE_TONES } from "../words.ts";
import { type BadgeStep, stepsOf } from "./steps.ts";

/** The columns of a list of badges. @param onStep opens the dialog of an action */
export const badgeColumns = (onStep: (badge: ListedBadge, step: BadgeStep) => void): Column<ListedBadge>[] => [
  {
    title: "Person",
    isName: true,
    cell: ({ userId, name }) => <Person userId={userId} name={name} />,
    csv: ({ userId }) => userId,
  },
  { title: "Name", csv: ({ name = "" }) => name },
  {
    title: "Number",
    cell: ({ id }) => (
      <a href={hrefOf("badge", { id })}>
        <Digits value={id} />
      </a>
    ),
    csv: ({ id }) => id,
  },
  {
    title: "State",
    cell: (badge) => <StateChip badge={badge} />,
    csv: (badge) => (isAhead(badge) ? "Not begun" : BADGE_STATE_WORDS[badge.state ?? "active"]),
  },
  {
    title: "Issued",
    cell: ({ issuedAt }) => issuedAt && <When at={issuedAt} />,
    csv: ({ issuedAt = "" }) => issuedAt,
  },
  { title: "Starts", csv: ({ startsAt = "" }) => startsAt },
  {
    title: "Ends",
    cell: ({ expiresAt }) => (expiresAt === undefined ? <span class="hint">no end</span> : <When at={expiresAt} />),
    csv: ({ expiresAt = "" }) => expiresAt,
  },
  {
    title: "Last change",
    cell: (badge) => <LastChange badge={badge} />,
    csv: ({ changedAt = "" }) => changedAt,
  },
  { title: "Changed by", csv: ({ changedBy }) => (changedBy === undefined ? "" : actorWords(changedBy)) },
  {
    title: ACTIONS,
    cell: (badge) => <BadgeMenu badge={badge} onStep={(step) => onStep(badge, step)} />,
  },
];

type Beginning = Pick<ListedBadge, "state" | "startsAt">;

/** Whether it will be active from its start on. */
const isAhead = <Badge extends Beginning>(badge: Badge): badge is Badge & { startsAt: string } =>
  (badge.state ?? "active") === "active" && badge.startsAt !== undefined && Date.parse(badge.startsAt) > Date.now();

/** A badge's state, or when it starts. */
export function StateChip({ badge }: { badge: Beginning }) {
  if (isAhead(badge)) return <Chip tone="waiting">Starts {shortTime(badge.startsAt)}</Chip>;
  const { state = "active" } = badge;
  return <Chip tone={BADGE_TONES[state]}>{BADGE_STATE_WORDS[state]}</Chip>;
}

/** The menu of a row, without what the role may not do. */
function BadgeMenu({ badge, onStep }: { badge: ListedBadge; onStep: (step: BadgeStep) => void }) {
  const session = useSession();
  const application = useSettings();
  const { state = "active", issuedAt = "", changedAt = "" } = badge;
  const steps = session.may("change") ? stepsOf({ ...badge, state, issuedAt, changedAt }, application) : [];
  return (
    <Menu
      of={`badge ${badge.id}, ${badge.name ?? badge.userId}`}
      items={[
        { label: "Open", onChoose: () => goTo("badge", { id: badge.id }) },
        ...steps.map((step) => ({ label: `${step.label}…`, isFinal: step.isFinal, onChoose: () => onStep(step) })),
      ]}
    />
  );
}

function LastChange({ badge: { changedAt, changedBy, issuedAt } }: { badge: ListedBadge }) {
  if (changedAt === undefined) return null;
  if (changedBy === undefined) return changedAt === issuedAt ? <span class="hint">none</span> : <When at={changedAt} />;
  return (
    <>
      <When at={changedAt} />
      <span class="second">
        <Plainly text={actorWords(changedBy)} />
      </span>
    </>
  );
}
