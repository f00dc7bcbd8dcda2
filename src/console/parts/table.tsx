import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { SessionEnded } from "../session.ts";
import { csvOf, MOST_CSV_ROWS, saveFile } from "./csv.ts";
import { type PagedList, useSession } from "./hooks.ts";
import { useNotify } from "./notice.tsx";
import type { OpenList } from "./pages.ts";
import { explain } from "./problems.ts";
import { Empty, Loading, Problem } from "./states.tsx";
import { count, counted } from "./texts.tsx";

export interface Column<Item> {
  title: string;
  /** Absent if the column is only in CSV files. */
  cell?: (item: Item) => ComponentChildren;
  /** The cell in a CSV file; absent if the column is in none. */
  csv?: (item: Item) => string;
  /** Replaces the title in the table's head. */
  head?: ComponentChildren;
  /** Whether it names the row to a screen reader. */
  isName?: boolean;
}

/** The title of the column of menus, which is not visible. */
export const ACTIONS = "Actions";

/** A list as a dense table; on a phone each row becomes a block. */
export function Table<Item>(props: {
  /** The items, such as `badges`. */
  noun: string;
  list: PagedList<Item>;
  columns: readonly Column<Item>[];
  keyOf: (item: Item) => string;
  empty: ComponentChildren;
  /** How many there are, if known. */
  total?: number | undefined;
  /** Opens the list for a CSV file, with large pages. */
  open: OpenList<Item>;
}) {
  const { noun, list, columns, keyOf, empty, total, open } = props;
  const { items, isComplete, isLoading, problem, more, reload } = list;
  const shown = columns.filter(({ cell }) => cell !== undefined);
  const body = useRef<HTMLTableSectionElement>(null);
  /** Index of the first row of the page being loaded. */
  const next = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (next.current === null || items.length <= next.current) return;
    body.current?.children[next.current]?.querySelector<HTMLElement>("a, button")?.focus();
    next.current = null;
  }, [items.length]);
  const showMore = () => {
    next.current = items.length;
    more();
  };
  return (
    <>
      <div class="table-head">
        <p class="hint table-count" role="status">
          {describeCount(items.length, isComplete, isLoading, noun, total)}
        </p>
        <div class="table-tools">
          <button type="button" class="quiet" onClick={reload}>
            Refresh
          </button>
          {items.length > 0 && <SaveCsv noun={noun} columns={columns} open={open} />}
        </div>
      </div>
      {problem !== null && <Problem text={problem} onRetry={reload} />}
      {items.length > 0 && (
        <table class="list" aria-label={noun}>
          <thead>
            <tr>
              {shown.map(({ title, head }) => (
                <th key={title} scope="col">
                  {head ?? (title === ACTIONS ? <span class="unseen">{title}</span> : title)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody ref={body}>
            {items.map((item) => (
              <tr key={keyOf(item)}>
                {shown.map(({ title, cell, isName }) =>
                  isName ? (
                    <th key={title} scope="row" data-title={title}>
                      {cell?.(item)}
                    </th>
                  ) : (
                    <td key={title} data-title={title}>
                      {cell?.(item)}
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {items.length === 0 && isComplete && !isLoading && <Empty>{empty}</Empty>}
      {isLoading && items.length === 0 && <Loading what={noun} />}
      {!isComplete && items.length > 0 && problem === null && (
        <button type="button" class="more" aria-disabled={isLoading} onClick={() => !isLoading && showMore()}>
          {isLoading ? "Loading…" : `Show more ${noun}`}
        </button>
      )}
    </>
  );
}

function describeCount(shown: number, isComplete: boolean, isLoading: boolean, noun: string, total?: number): string {
  if (shown === 0) return isLoading ? "" : `No ${noun}`;
  const items = shown === 1 ? noun.replace(/s$/, "").replace(/ie$/, "y").replace("people", "person") : noun;
  if (isComplete || total === shown) return `${count(shown)} ${items}`;
  if (isLoading) return `${count(shown)} ${items} so far`;
  return total !== undefined && total > shown
    ? `${count(shown)} of ${count(total)} ${noun}`
    : `The first ${count(shown)} ${items}; there are more`;
}

/** Saves the whole list, not only the rows shown. */
function SaveCsv<Item>(props: { noun: string; columns: readonly Column<Item>[]; open: OpenList<Item> }) {
  const { noun, columns, open } = props;
  const session = useSession();
  const notify = useNotify();
  const [read, setRead] = useState<number | null>(null);
  const save = async () => {
    if (read !== null) return;
    setRead(0);
    try {
      const items: Item[] = [];
      let isFull = false;
      await session.run(async (server, signal) => {
        for await (const page of open(server, signal)) {
          items.push(...page.items);
          setRead(items.length);
          isFull = items.length >= MOST_CSV_ROWS && !page.isLast;
          if (isFull) break;
        }
      });
      const kept = columns.filter((column) => column.csv !== undefined);
      const rows = items.map((item) => kept.map(({ csv }) => csv?.(item) ?? ""));
      saveFile(
        `${noun.replaceAll(" ", "-")}-${new Date().toISOString().slice(0, 10)}.csv`,
        csvOf(
          kept.map(({ title }) => title),
          rows,
        ),
      );
      const saved = counted(items.length, "row");
      notify({ text: isFull ? `Saved the first ${saved} as CSV; one file has no more.` : `Saved ${saved} as CSV.` });
    } catch (error) {
      if (!(error instanceof SessionEnded)) notify({ text: explain(error), tone: "bad" });
    } finally {
      setRead(null);
    }
  };
  return (
    <button type="button" class="quiet" aria-disabled={read !== null} onClick={save}>
      {read === null ? "Save as CSV" : `Reading ${count(read)}…`}
    </button>
  );
}

/** Filters of a list, each a link with its count. */
export function Filters(props: {
  label: string;
  choices: readonly { title: string; href: string; isChosen: boolean; count?: number | undefined }[];
}) {
  return (
    <nav class="filters" aria-label={props.label}>
      {props.choices.map(({ title, href, isChosen, count: number }) => (
        <a key={title} href={href} aria-current={isChosen ? "true" : undefined}>
          {title}
          {number !== undefined && <span class="filter-count">{count(number)}</span>}
        </a>
      ))}
    </nav>
  );
}
