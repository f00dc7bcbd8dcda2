import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { HistoryEntry, HistoryQuery } from "../../client/index.ts";
import { dayOf } from "../parts/days.ts";
import { useList } from "../parts/hooks.ts";
import { Plainly } from "../parts/identity.tsx";
import { type OpenList, pagesOf } from "../parts/pages.ts";
import { hrefOf, type Params } from "../parts/route.ts";
import { Title } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Digits, When } from "../parts/texts.tsx";
import { actionWords, actorWords, detailWords } from "./action-names.ts";
import { By } from "./by.tsx";
import { HistoryFilters } from "./filters.tsx";

const PER_PAGE = 100;

type HistoryFilter = Pick<HistoryQuery, "badgeId" | "userId" | "since" | "until" | "actor" | "action">;

/** The filter in the address. It includes the last day. */
function filterOf({ badge, user, from, to, actor, action }: Params): HistoryFilter {
  return {
    ...{ badgeId: badge, userId: user, actor, action },
    since: from === undefined ? undefined : dayOf(from, new Date())?.from,
    until: to === undefined ? undefined : dayOf(to, new Date())?.until,
  };
}

/** Who did what, filtered by day, badge, person, actor and action. The filter is in the address. */
export function History({ params }: { params: Params }) {
  return (
    <>
      <Title>History</Title>
      <HistoryFilters params={params} />
      <HistoryTable filter={filterOf(params)} version={0} />
      <p class="hint">
        Badges that phones got by logging in have no entry: each badge has the time of its issue. Nobody can change the
        history.
      </p>
    </>
  );
}

/** @param version a new value reloads the list @param oldest what happened before the first entry */
export function HistoryTable(props: { filter: HistoryFilter; version: number; oldest?: ComponentChildren }) {
  const { filter, version, oldest } = props;
  const { badgeId, userId } = filter;
  const open =
    (perPage: number): OpenList<HistoryEntry> =>
    (server, signal) =>
      pagesOf(server.listHistory({ ...filter, perPage, signal }), ({ history }) => history);
  const list = useList(open(PER_PAGE), JSON.stringify(filter));
  const shown = useRef(version);
  useEffect(() => {
    if (shown.current !== version) list.reload();
    shown.current = version;
  }, [version]);
  const columns: Column<HistoryEntry>[] = [
    { title: "When", isName: true, cell: ({ at }) => <When at={at} />, csv: ({ at }) => at },
    {
      title: "What",
      cell: (entry) => (
        <>
          {actionWords(entry)}
          <span class="second">{detailWords(entry)}</span>
        </>
      ),
      csv: ({ action }) => action,
    },
    { title: "By", cell: ({ actor }) => <By actor={actor} />, csv: ({ actor }) => actorWords(actor) },
  ];
  if (badgeId === undefined) {
    columns.push({
      title: "Badge",
      cell: ({ badgeId: id }) =>
        id !== undefined && (
          <a href={hrefOf("badge", { id })}>
            <Digits value={id} />
          </a>
        ),
      csv: ({ badgeId: id = "" }) => id,
    });
  }
  if (userId === undefined) {
    columns.push({
      title: "Person",
      cell: ({ userId: user }) =>
        user !== undefined && (
          <a href={hrefOf("person", { user })}>
            <Plainly text={user} />
          </a>
        ),
      csv: ({ userId: user = "" }) => user,
    });
  }
  columns.push(
    { title: "Reason", cell: ({ reason }) => reason, csv: ({ reason = "" }) => reason },
    { title: "Detail", csv: ({ detail }) => (detail === undefined ? "" : JSON.stringify(detail)) },
  );
  return (
    <>
      <Table
        noun="entries"
        list={list}
        columns={columns}
        keyOf={(entry) => `${entry.at} ${entry.action} ${entry.badgeId} ${entry.userId} ${entry.requestId}`}
        open={open(1000)}
        empty={oldest === undefined ? "No entry matches." : "Nothing has been done to it since."}
      />
      {oldest !== undefined && list.isComplete && <p class="hint">{oldest}</p>}
    </>
  );
}
