import { useRef, useState } from "preact/hooks";
import type { ListedBlockedUser } from "../../client/index.ts";
import { useList, useSession } from "../parts/hooks.ts";
import { Person } from "../parts/identity.tsx";
import { Menu } from "../parts/menu.tsx";
import { type OpenList, pagesOf } from "../parts/pages.ts";
import { goTo } from "../parts/route.ts";
import { Title } from "../parts/states.tsx";
import { ACTIONS, type Column, Table } from "../parts/table.tsx";
import { When } from "../parts/texts.tsx";
import { type PersonStep, PersonStepDialog } from "./steps.tsx";

/** The people who get no badge. */
export function Blocked() {
  const session = useSession();
  const [asking, setAsking] = useState<{ userId: string; step: PersonStep } | null>(null);
  const open =
    (perPage: number): OpenList<ListedBlockedUser> =>
    (server, signal) =>
      pagesOf(server.listBlockedUsers({ perPage, signal }), ({ users }) => users);
  const list = useList(open(100), "");
  const columns: Column<ListedBlockedUser>[] = [
    { title: "Person", isName: true, cell: ({ userId }) => <Person userId={userId} />, csv: ({ userId }) => userId },
    {
      title: "Blocked since",
      cell: ({ blockedAt }) => <When at={blockedAt} />,
      csv: ({ blockedAt }) => blockedAt,
    },
    {
      title: ACTIONS,
      cell: ({ userId }) => (
        <Menu
          of={userId}
          items={[
            { label: "Who blocked, and why", onChoose: () => goTo("history", { user: userId }) },
            ...(session.may("change")
              ? [{ label: "Unblock…", onChoose: () => setAsking({ userId, step: "unblock" as const }) }]
              : []),
          ]}
        />
      ),
    },
  ];
  return (
    <>
      <Title>Blocked people</Title>
      {session.may("change") && <BlockForm onBlock={(userId) => setAsking({ userId, step: "block" })} />}
      <Table
        noun="people"
        list={list}
        columns={columns}
        keyOf={({ userId }) => userId}
        open={open(1000)}
        empty="Nobody is blocked."
      />
      {asking !== null && <PersonStepDialog {...asking} onDone={list.reload} onClose={() => setAsking(null)} />}
    </>
  );
}

/** Blocks a person who has no badge yet. */
function BlockForm({ onBlock }: { onBlock: (userId: string) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    const userId = input.current?.value ?? "";
    if (userId.trim() !== "" && userId !== "." && userId !== "..") onBlock(userId);
  };
  return (
    <details>
      <summary>Block somebody who has no badge yet</summary>
      <form class="find" onSubmit={submit}>
        <label>
          User ID <span class="hint">(every character counts)</span>
          <input ref={input} required autocomplete="off" autocapitalize="off" spellcheck={false} />
        </label>
        <button type="submit">Block…</button>
      </form>
    </details>
  );
}
