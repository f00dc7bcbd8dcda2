import type { ListedEvent } from "../../client/index.ts";
import { Action } from "../parts/action.tsx";
import { Chip, count, Digits, Field, When } from "../parts/texts.tsx";
import { deliveryWord, EVENT_TONES, eventWords, explainDelivery, isProblem } from "../words.ts";
import { useSendAgain } from "./send-again.ts";

/** A webhook: how its delivery went, why it failed, and what was sent. */
export function DeliveryCard({ event: given }: { event: ListedEvent }) {
  const { event, isSending, sentAt, send } = useSendAgain(given);
  const { id, state, attempts, lastOutcome, lastStatus, lastResponse, createdAt, nextAttemptAt, deliveredAt, data } =
    event;
  const tone = isProblem(state, lastOutcome) && state !== "held" ? "bad" : EVENT_TONES[state];
  return (
    <article class="card" aria-label={`${eventWords(event.event)}, ${id}`} data-about={id}>
      <div class="card-head">
        <h2>{eventWords(event.event)}</h2>
        {isSending ? <Chip tone="waiting">Sending</Chip> : <Chip tone={tone}>{deliveryWord(state, lastOutcome)}</Chip>}
      </div>
      <p>{isSending ? "It is being sent again." : explainDelivery(event)}</p>
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
        {sentAt !== null && (
          <Field label="Sent again">
            <When at={sentAt} />
          </Field>
        )}
        <Field label={sentAt === null ? "Attempts" : "Attempts since then"}>{count(attempts)}</Field>
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
        <Action label="Send again" about={id} isBusy={isSending} act={send} />
      </div>
    </article>
  );
}
