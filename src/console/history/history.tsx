import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { HistoryEntry } from "../../client/index.ts";
import { type OpenList, pagesOf, useList } from "../parts/hooks.ts";
import { Plainly } from "../parts/identity.tsx";
import { goTo, hrefOf } from "../parts/route.ts";
import { Title } from "../parts/states.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Digits, When } from "../parts/texts.tsx";
import { By } from "./by.tsx";
import { actionWords, actorWords, detailWords } from "./words.ts";

const PER_PAGE = 100;

interface HistoryFilter {
  badgeId?: string | undefined;
  userId?: string | undefined;
}

/** Who did what, of everything or of a badge or a person. */
export function History({ params }: { params: Readonly<Record<string, string>> }) {
  const { badge, user } = params;
  const submit = (event: Event) => {
    event.preventDefault();
    const form = event.currentTarget;
    if (!(form instanceof HTMLFormElement)) return;
    const [badgeField, userField] = [...form.querySelectorAll("input")];
    goTo("history", { badge: badgeField?.value.replaceAll(/\D/g, ""), user: userField?.value });
  };
  return (
    <>
      <Title>History</Title>
      <form class="find" onSubmit={submit} key={`${badge} ${user}`}>
        <label>
          Badge number
          <input type="search" inputMode="numeric" defaultValue={badge ?? ""} autocomplete="off" />
        </label>
        <label>
          User ID <span class="hint">(the whole)</span>
          <input type="search" defaultValue={user ?? ""} autocomplete="off" autocapitalize="off" spellcheck={false} />
        </label>
        <button type="submit" class="primary">
          Show
        </button>
        {(badge ?? user) !== undefined && <a href={hrefOf("history")}>Show all</a>}
      </form>
      <HistoryTable filter={{ badgeId: badge, userId: user }} version={0} />
      <p class="hint">
        Badges that phones got by logging in are not here: they have the time of their issue. Nobody can change the
        history.
      </p>
    </>
  );
}

/** @param version another one loads it again @param oldest what came before all that is there */
export function HistoryTable(props: { filter: HistoryFilter; version: number; oldest?: ComponentChildren }) {
  const { filter, version, oldest } = props;
  const { badgeId, userId } = filter;
  const open =
    (perPage: number): OpenList<HistoryEntry> =>
    (server, signal) =>
      pagesOf(server.listHistory({ badgeId, userId, perPage, signal }), ({ history }) => history);
  const list = useList(open(PER_PAGE), `${badgeId} ${userId}`);
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
  columns.push({ title: "Reason", cell: ({ reason }) => reason, csv: ({ reason = "" }) => reason });
  return (
    <>
      <Table
        noun="entries"
        list={list}
        columns={columns}
        keyOf={(entry) => `${entry.at} ${entry.action} ${entry.badgeId} ${entry.userId} ${entry.requestId}`}
        open={open(1000)}
        empty={oldest === undefined ? "Nothing is in the history." : "Nothing was done to it since."}
      />
      {oldest !== undefined && list.isComplete && <p class="hint">{oldest}</p>}
    </>
  );
}
