import { useState } from "preact/hooks";
import type { EventPage, EventState, ListedEvent } from "../client/index.ts";
import { Action } from "./parts/action.tsx";
import { Filter } from "./parts/filter.tsx";
import { usePages, useSession } from "./parts/hooks.ts";
import { useNotify } from "./parts/notice.tsx";
import { Rows } from "./parts/states.tsx";
import { Chip, count, Digits, Field, When } from "./parts/texts.tsx";
import { deliveryWord, EVENT_STATE_WORDS, EVENT_TONES, eventWords, explainDelivery } from "./words.ts";

const PER_PAGE = 50;

/** Lists webhooks, says why one failed, and sends it again. */
export function Deliveries() {
  const { webhookUrl } = useSession().application;
  const [state, setState] = useState<EventState | null>(null);
  const list = usePages<ListedEvent, EventPage>(
    (server, signal) => server.listEvents({ perPage: PER_PAGE, signal, ...(state !== null && { state }) }),
    ({ events }) => events,
    state ?? "",
  );
  return (
    <>
      <h1>Deliveries</h1>
      {webhookUrl === null ? (
        <p class="note">This application has no webhook address, so nothing is sent.</p>
      ) : (
        <p class="hint">
          Webhooks go to <span class="user-id">{webhookUrl}</span>.
        </p>
      )}
      <div class="section-head">
        <Filter words={EVENT_STATE_WORDS} value={state} onChange={setState} />
        <button type="button" onClick={list.reload}>
          Load again
        </button>
      </div>
      <Rows
        list={list}
        what="deliveries"
        keyOf={({ id, state: at, attempts }) => `${id} ${at} ${attempts}`}
        empty={state === null ? "Nothing has been sent yet." : "No delivery is in this state."}
      >
        {(event) => <DeliveryCard event={event} />}
      </Rows>
    </>
  );
}

function DeliveryCard({ event: given }: { event: ListedEvent }) {
  const session = useSession();
  const notify = useNotify();
  const [event, setEvent] = useState(given);
  const { id, state, attempts, lastOutcome, lastStatus, lastResponse, createdAt, nextAttemptAt, deliveredAt, data } =
    event;
  const replay = async () => {
    const replayed = await session.run((server, signal) => server.replayEvent(id, { signal }));
    setEvent((before) => ({ ...before, state: replayed.state, nextAttemptAt: null, deliveredAt: null }));
    const text = replayed.state === "held" ? "It is sent when deliveries are released." : "It is being sent again.";
    notify({ text: `${eventWords(event.event)}: ${text} Load again to see how it went.` });
  };
  return (
    <article class="card" aria-label={`${eventWords(event.event)}, ${id}`}>
      <div class="card-head">
        <h2>{eventWords(event.event)}</h2>
        <Chip tone={EVENT_TONES[state]}>{deliveryWord(state, lastOutcome)}</Chip>
      </div>
      <p>{explainDelivery(event)}</p>
      <dl class="fields">
        {typeof data.id === "string" && (
          <Field label="Number">
            <Digits value={data.id} />
          </Field>
        )}
        <Field label="Made">
          <When at={createdAt} />
        </Field>
        {deliveredAt !== null && (
          <Field label="Delivered">
            <When at={deliveredAt} />
          </Field>
        )}
        <Field label="Attempts">{count(attempts)}</Field>
        {nextAttemptAt !== null && state === "pending" && (
          <Field label="Next attempt">
            <When at={nextAttemptAt} />
          </Field>
        )}
      </dl>
      <details>
        <summary>Payload and response</summary>
        <h3>Payload</h3>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard has to reach it */}
        <pre tabIndex={0}>{JSON.stringify(data, null, 2)}</pre>
        <h3>Last response{lastStatus !== null && `: HTTP status ${lastStatus}`}</h3>
        {lastResponse === null || lastResponse === "" ? (
          <p class="hint">No text came back.</p>
        ) : (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard has to reach it
          <pre tabIndex={0}>{lastResponse}</pre>
        )}
        <p class="hint">
          Event <code>{id}</code>
        </p>
      </details>
      <div class="actions">
        <Action label="Send again" act={replay} />
      </div>
    </article>
  );
}
