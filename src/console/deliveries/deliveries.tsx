import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { EventState, ListedEvent } from "../../client/index.ts";
import { useList, useSession } from "../parts/hooks.ts";
import { Menu } from "../parts/menu.tsx";
import { useNotify } from "../parts/notice.tsx";
import { type OpenList, pagesOf } from "../parts/pages.ts";
import { explain } from "../parts/problems.ts";
import { hrefOf } from "../parts/route.ts";
import { useSettings } from "../parts/settings.ts";
import { Title } from "../parts/states.tsx";
import { ACTIONS, type Column, Filters, Table } from "../parts/table.tsx";
import { Chip, count, Digits, When } from "../parts/texts.tsx";
import { SessionEnded } from "../session.ts";
import { deliveryWord, EVENT_STATE_WORDS, EVENT_TONES, eventWords, explainDelivery, isProblem } from "../words.ts";
import { listProblems } from "./list-problems.ts";
import { sendAgain } from "./send-again.ts";
import { SendAll } from "./send-all.tsx";

const PER_PAGE = 50;
const STATES = ["pending", "delivered", "exhausted", "held"] as const;

type Choice = "problems" | "all" | EventState;

const CHOICES: readonly Choice[] = ["problems", "all", ...STATES];
const CHOICE_WORDS: Readonly<Record<Choice, string>> = { problems: "Problems", all: "All", ...EVENT_STATE_WORDS };

const EMPTY: Readonly<Record<Choice, string>> = {
  problems: "No problems: no delivery has failed, been given up or been put on hold.",
  all: "Nothing has been sent yet.",
  pending: "No delivery is waiting or being retried.",
  delivered: "Nothing has been delivered yet.",
  exhausted: "No delivery has been given up. One that still fails is under “Problems”.",
  held: "No delivery is on hold.",
};

/** Lists webhook deliveries, problems first. It says why they failed, and sends them again. */
export function Deliveries({ params }: { params: Readonly<Record<string, string>> }) {
  const session = useSession();
  const notify = useNotify();
  const { webhookUrl } = useSettings();
  const choice = CHOICES.find((each) => each === params.state) ?? "problems";
  const [shown, setShown] = useState<ListedEvent | null>(null);
  const open =
    (perPage: number): OpenList<ListedEvent> =>
    (server, signal) => {
      const state = STATES.find((each) => each === choice);
      const pages =
        choice === "problems"
          ? listProblems(server, perPage, signal)
          : server.listEvents({ perPage, signal, ...(state && { state }) });
      return pagesOf(pages, ({ events }) => events);
    };
  const list = useList(open(PER_PAGE), choice);
  const send = (event: ListedEvent) => {
    sendAgain(session, event, notify, list.reload).catch((error: unknown) => {
      if (!(error instanceof SessionEnded)) notify({ text: explain(error), tone: "bad" });
    });
  };
  const columns: readonly Column<ListedEvent>[] = [
    { title: "What", isName: true, cell: ({ event }) => eventWords(event), csv: ({ event }) => event },
    {
      title: "Number",
      cell: ({ event, data }) =>
        typeof data.id === "string" &&
        (event.startsWith("badge:") ? (
          <a href={hrefOf("badge", { id: data.id })}>
            <Digits value={data.id} />
          </a>
        ) : (
          <Digits value={data.id} />
        )),
      csv: ({ data }) => (typeof data.id === "string" ? data.id : ""),
    },
    {
      title: "State",
      cell: ({ state, lastOutcome }) => (
        <Chip tone={isProblem(state, lastOutcome) && state !== "held" ? "bad" : EVENT_TONES[state]}>
          {deliveryWord(state, lastOutcome)}
        </Chip>
      ),
      csv: ({ state, lastOutcome }) => deliveryWord(state, lastOutcome),
    },
    { title: "Why", cell: (event) => <span class="why">{explainDelivery(event)}</span>, csv: explainDelivery },
    { title: "Created", cell: ({ createdAt }) => <When at={createdAt} />, csv: ({ createdAt }) => createdAt },
    { title: "Attempts", cell: ({ attempts }) => count(attempts), csv: ({ attempts }) => String(attempts) },
    {
      title: "Next attempt",
      cell: ({ nextAttemptAt, state }) => nextAttemptAt !== null && state === "pending" && <When at={nextAttemptAt} />,
      csv: ({ nextAttemptAt }) => nextAttemptAt ?? "",
    },
    {
      title: ACTIONS,
      cell: (event) => (
        <Menu
          of={`${eventWords(event.event)}, ${event.id}`}
          items={[
            { label: "Payload and response", onChoose: () => setShown(event) },
            ...(session.may("change") ? [{ label: "Send again", onChoose: () => send(event) }] : []),
          ]}
        />
      ),
    },
  ];
  return (
    <>
      <Title>Deliveries</Title>
      <p class="hint">
        {webhookUrl === null ? (
          "This application has no webhook address: deliveries listed here wait until it has one."
        ) : (
          <>
            The service reports what happens to badges to <span class="user-id">{webhookUrl}</span>.
          </>
        )}
      </p>
      <Filters
        label="States"
        choices={CHOICES.map((each) => ({
          title: CHOICE_WORDS[each],
          href: hrefOf("deliveries", { state: each }),
          isChosen: each === choice,
        }))}
      />
      {choice === "problems" && list.items.length > 0 && session.may("change") && <SendAll onDone={list.reload} />}
      <Table
        noun="deliveries"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        open={open(1000)}
        empty={EMPTY[choice]}
      />
      {shown !== null && <Payload event={shown} onClose={() => setShown(null)} />}
    </>
  );
}

/** What was sent, and what came back. */
function Payload({ event, onClose }: { event: ListedEvent; onClose: () => void }) {
  const { id, data, lastStatus, lastResponse } = event;
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-label={eventWords(event.event)} onClose={onClose}>
      <h2>{eventWords(event.event)}</h2>
      <p class="hint">
        Event <code>{id}</code>
      </p>
      <h3>Payload</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard has to reach it */}
      <pre tabIndex={0}>{JSON.stringify(data, null, 2)}</pre>
      <h3>Last response{lastStatus !== null && `: HTTP status ${lastStatus}`}</h3>
      {lastResponse === null || lastResponse === "" ? (
        <p class="hint">The response had no text.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard has to reach it
        <pre tabIndex={0}>{lastResponse}</pre>
      )}
      <div class="actions">
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
