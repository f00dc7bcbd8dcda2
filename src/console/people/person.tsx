import { useState } from "preact/hooks";
import type { BlockedUser, ListedBadge, User } from "../../client/index.ts";
import { StateChip } from "../badges/badge-columns.tsx";
import { HistoryTable } from "../history/history.tsx";
import { useList, useLoaded, useSession } from "../parts/hooks.ts";
import { Plainly } from "../parts/identity.tsx";
import { type OpenList, pagesOf } from "../parts/pages.ts";
import { hrefOf } from "../parts/route.ts";
import { Empty, Show, Title } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Chip, Digits, When } from "../parts/texts.tsx";
import { type PersonStep, PersonStepDialog } from "./steps.tsx";

const PER_PAGE = 100;

/** A person: whether blocked, the badges and the history. */
export function PersonPage({ params: { user = "" } }: { params: Readonly<Record<string, string>> }) {
  return (
    <>
      <p class="back">
        <a href={hrefOf("badges")}>All badges</a>
      </p>
      <Title>
        <Plainly text={user} />
      </Title>
      {/* A path cannot name these (contract section 7). */}
      {["", ".", ".."].includes(user) ? <Empty>No user can have this ID.</Empty> : <Card key={user} userId={user} />}
    </>
  );
}

function Card({ userId }: { userId: string }) {
  const session = useSession();
  const [asking, setAsking] = useState<PersonStep | null>(null);
  const [version, setVersion] = useState(0);
  const person = useLoaded((server, signal) => server.getUser(userId, { signal }), userId);
  const open =
    (perPage: number): OpenList<ListedBadge> =>
    (server, signal) =>
      pagesOf(server.listBadges({ userId, perPage, signal }), ({ badges }) => badges);
  const list = useList(open(PER_PAGE), userId);
  const refresh = () => {
    person.reload();
    list.reload();
    setVersion((times) => times + 1);
  };
  const columns: readonly Column<ListedBadge>[] = [
    {
      title: "Number",
      isName: true,
      cell: ({ id }) => (
        <a href={hrefOf("badge", { id })}>
          <Digits value={id} />
        </a>
      ),
      csv: ({ id }) => id,
    },
    { title: "State", cell: (badge) => <StateChip badge={badge} />, csv: ({ state = "active" }) => state },
    {
      title: "Phone",
      cell: ({ metadata }) => metadata?.deviceModel,
      csv: ({ metadata }) => metadata?.deviceModel ?? "",
    },
    {
      title: "Ends",
      cell: ({ expiresAt }) => (expiresAt === undefined ? <span class="hint">no end</span> : <When at={expiresAt} />),
      csv: ({ expiresAt = "" }) => expiresAt,
    },
  ];
  return (
    <>
      <Show loaded={person} what="the person">
        {(value) => <Standing user={value} onStep={setAsking} canChange={session.may("change")} />}
      </Show>
      <h2>Badges in use</h2>
      <Table
        noun="badges"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        open={open(1000)}
        empty="This person has no badge that is active or suspended."
      />
      {[...userId].length >= 2 && (
        <p>
          <a href={hrefOf("badges", { state: "all", q: userId })}>Ended badges, too</a>
        </p>
      )}
      <h2>History</h2>
      <HistoryTable filter={{ userId }} version={version} />
      {asking !== null && (
        <PersonStepDialog userId={userId} step={asking} onDone={refresh} onClose={() => setAsking(null)} />
      )}
    </>
  );
}

function Standing(props: { user: User | BlockedUser; canChange: boolean; onStep: (step: PersonStep) => void }) {
  const { user, canChange, onStep } = props;
  return (
    <>
      <p>{user.blocked ? <Chip tone="bad">Blocked: gets no badge</Chip> : <Chip tone="good">Not blocked</Chip>}</p>
      {canChange && (
        <div class="actions">
          <button
            type="button"
            class={user.blocked ? undefined : "final"}
            onClick={() => onStep(user.blocked ? "unblock" : "block")}
          >
            {user.blocked ? "Unblock…" : "Block…"}
          </button>
          <button type="button" class="quiet" onClick={() => onStep("erase")}>
            Erase the person's data…
          </button>
        </div>
      )}
    </>
  );
}
