import type { ConsolePerson } from "../../client/index.ts";
import { useList } from "../parts/hooks.ts";
import { Plainly } from "../parts/identity.tsx";
import { type OpenList, pagesOf } from "../parts/pages.ts";
import { hrefOf } from "../parts/route.ts";
import { Title } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { When } from "../parts/texts.tsx";

const ROLE_WORDS = {
  viewer: "Viewer: may read everything",
  reception: "Reception: may also invite visitors",
  operator: "Operator: may do everything here",
} as const;

const COLUMNS: readonly Column<ConsolePerson>[] = [
  { title: "Person", isName: true, cell: ({ name }) => <Plainly text={name} />, csv: ({ name }) => name },
  { title: "Role", cell: ({ role }) => ROLE_WORDS[role], csv: ({ role }) => role },
  { title: "Since", cell: ({ createdAt }) => <When at={createdAt} />, csv: ({ createdAt }) => createdAt },
  { title: "History", cell: ({ name }) => <a href={hrefOf("history", { actor: name })}>What {name} did</a> },
];

/** Who can sign in here, and as what. */
export function AccessView() {
  const open =
    (perPage: number): OpenList<ConsolePerson> =>
    (server, signal) =>
      pagesOf(server.listAccess({ perPage, signal }), ({ people }) => people);
  const list = useList(open(100), "");
  return (
    <>
      <Title>Access</Title>
      <p class="hint">
        These people have a secret for this console. The application's own server is not listed. An administrator adds
        and retires secrets.
      </p>
      <Table
        noun="people"
        list={list}
        columns={COLUMNS}
        keyOf={({ name }) => name}
        open={open(1000)}
        empty="Nobody has a secret of their own yet."
      />
    </>
  );
}
