import { useState } from "preact/hooks";
import type { EventPage, EventState, ListedEvent } from "../../client/index.ts";
import { Filter } from "../parts/filter.tsx";
import { usePages, useSession } from "../parts/hooks.ts";
import { useNotices } from "../parts/notice.tsx";
import { Rows, Title } from "../parts/states.tsx";
import { EVENT_STATE_WORDS } from "../words.ts";
import { DeliveryCard } from "./delivery-card.tsx";
import { listProblems } from "./list-problems.ts";

const PER_PAGE = 50;

type Choice = "problems" | "all" | EventState;

const CHOICE_WORDS: Readonly<Record<Choice, string>> = { problems: "Problems", all: "All", ...EVENT_STATE_WORDS };

const EMPTY: Readonly<Record<Choice, string>> = {
  problems: "No problems: no delivery has failed, been given up or put on hold. Choose “All” to see every delivery.",
  all: "Nothing has been sent yet.",
  pending: "No delivery is waiting or being retried.",
  delivered: "Nothing has been delivered yet.",
  exhausted: "No delivery has been given up. One that still fails is under “Problems”.",
  held: "No delivery is on hold.",
};

/** Lists webhooks, problems first, says why one failed, and sends it again. */
export function Deliveries() {
  const { webhookUrl } = useSession().application;
  const { dismiss } = useNotices();
  const [choice, setChoice] = useState<Choice>("problems");
  const list = usePages<ListedEvent, EventPage>(
    (server, signal) => {
      if (choice === "problems") return listProblems(server, PER_PAGE, signal);
      return server.listEvents({ perPage: PER_PAGE, signal, ...(choice !== "all" && { state: choice }) });
    },
    ({ events }) => events,
    choice,
  );
  const choose = (chosen: Choice) => {
    dismiss();
    setChoice(chosen);
  };
  const reload = () => {
    dismiss();
    list.reload();
  };
  return (
    <>
      <Title>Deliveries</Title>
      {webhookUrl === null ? (
        <p class="note">This application has no webhook address, so nothing is sent.</p>
      ) : (
        <p class="hint">
          Webhooks go to <span class="user-id">{webhookUrl}</span>.
        </p>
      )}
      <div class="section-head">
        <Filter words={CHOICE_WORDS} value={choice} onChange={choose} />
        <button type="button" onClick={reload}>
          Load again
        </button>
      </div>
      <Rows
        list={list}
        what="deliveries"
        keyOf={({ id, state, attempts }) => `${id} ${state} ${attempts}`}
        empty={EMPTY[choice]}
      >
        {(event) => <DeliveryCard event={event} />}
      </Rows>
    </>
  );
}
