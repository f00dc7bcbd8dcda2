import type { ConnectedDoor } from "../../client/index.ts";
import { useList } from "../parts/hooks.ts";
import { Plainly } from "../parts/identity.tsx";
import { type OpenList, pagesOf } from "../parts/pages.ts";
import { Title } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { When } from "../parts/texts.tsx";
import { isConnected } from "./knowing.ts";

/** What the list says about a door. */
function knows(door: ConnectedDoor): string {
  if (door.seenAt === undefined) return "Has never called";
  if (!isConnected(door)) return "Not connected: it uses its lists";
  return door.isCurrent ? "Yes" : "Not yet";
}

const COLUMNS: readonly Column<ConnectedDoor>[] = [
  { title: "Door", isName: true, cell: ({ name }) => <Plainly text={name} />, csv: ({ name }) => name },
  { title: "Knows the last change", cell: knows, csv: knows },
  {
    title: "Last call",
    cell: ({ seenAt }) => (seenAt === undefined ? "never" : <When at={seenAt} />),
    csv: ({ seenAt = "" }) => seenAt,
  },
  { title: "Secret since", cell: ({ createdAt }) => <When at={createdAt} />, csv: ({ createdAt }) => createdAt },
];

/** The doors that have a secret, and whether each has the last change of a badge's status. */
export function Doors() {
  const open =
    (perPage: number): OpenList<ConnectedDoor> =>
    (server, signal) =>
      pagesOf(server.listDoors({ perPage, signal }), ({ doors }) => doors);
  const list = useList(open(100), "");
  return (
    <>
      <Title>Doors</Title>
      <p class="hint">
        Doors with a secret learn within two seconds that a badge was suspended or revoked. Other doors are not listed.
        An administrator adds and retires secrets.
      </p>
      <Table
        noun="doors"
        list={list}
        columns={COLUMNS}
        keyOf={({ name }) => name}
        open={open(1000)}
        empty="No door has a secret yet."
      />
    </>
  );
}
