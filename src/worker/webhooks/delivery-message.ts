import * as z from "zod";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { PLATFORM_DEADLINE_MILLISECONDS } from "../../shared/limits/platform-limits.ts";
import { MAX_QUEUE_BATCH_MESSAGES, MAX_QUEUE_DELAY_SECONDS } from "../../shared/limits/sweep-limits.ts";
import { DELIVERIES_PER_SECOND } from "../../shared/limits/webhook-limits.ts";
import { log } from "../log.ts";
import { withDeadline } from "../platform.ts";
import type { EventId } from "../storage/webhook-events.ts";

/**
 * A queue message: this event may be due. It carries IDs only; D1 has the event. A queue delays by whole seconds, so the consumer
 * waits for the rest.
 */
export const deliveryMessage = z.object({
  applicationId,
  eventId: z.string(),
  afterMilliseconds: z.int().min(0).max(999).optional(),
});

export type DeliveryMessage = z.infer<typeof deliveryMessage>;

export interface DelayedMessage {
  body: DeliveryMessage;
  delaySeconds: number;
}

/**
 * Spreads the deliveries of one application, so that `DELIVERIES_PER_SECOND` begin each second: each batch of them writes D1
 * (contract section 21).
 */
export class DeliveryPace {
  #nextAt = 0;

  /**
   * Messages for the application's next events. Events too far ahead for the queue are left out: the tick enqueues them later.
   *
   * @param now milliseconds
   */
  messagesFor(ids: readonly EventId[], now: number): DelayedMessage[] {
    return ids.flatMap((id) => {
      const at = Math.max(now, this.#nextAt);
      const delaySeconds = Math.floor((at - now) / 1000);
      if (delaySeconds > MAX_QUEUE_DELAY_SECONDS) return [];
      this.#nextAt = at + 1000 / DELIVERIES_PER_SECOND;
      return [{ body: { ...id, afterMilliseconds: (at - now) % 1000 }, delaySeconds }];
    });
  }
}

/** Enqueues deliveries, best effort: the tick finds the event of a lost message within about a minute. */
export function enqueueDeliveries(
  queue: Queue<DeliveryMessage>,
  applicationId: ApplicationId,
  eventIds: readonly string[],
  pace = new DeliveryPace(),
): Promise<void> {
  const ids = eventIds.map((eventId) => ({ applicationId, eventId }));
  return enqueueDelayed(queue, pace.messagesFor(ids, Date.now()));
}

/** Enqueues messages with their delays, best effort. If a batch fails, that is logged and the next one is sent. */
export async function enqueueDelayed(
  queue: Queue<DeliveryMessage>,
  messages: readonly DelayedMessage[],
): Promise<void> {
  for (const batch of batchesOf(messages)) {
    try {
      await sendBatch(queue, batch);
    } catch (error) {
      for (const { body } of batch) {
        log("warn", { event: "enqueue-failed", application: body.applicationId, eventId: body.eventId, error });
      }
    }
  }
}

/** @throws Unavailable at the first batch that the queue refuses; later batches are not sent */
export async function enqueueAll(queue: Queue<DeliveryMessage>, messages: readonly DelayedMessage[]): Promise<void> {
  for (const batch of batchesOf(messages)) await sendBatch(queue, batch);
}

const sendBatch = (queue: Queue<DeliveryMessage>, batch: readonly MessageSendRequest<DeliveryMessage>[]) =>
  withDeadline("queue", PLATFORM_DEADLINE_MILLISECONDS, () => queue.sendBatch(batch));

const batchesOf = <Sent>(messages: readonly Sent[]): Sent[][] =>
  Array.from({ length: Math.ceil(messages.length / MAX_QUEUE_BATCH_MESSAGES) }, (_, index) =>
    messages.slice(index * MAX_QUEUE_BATCH_MESSAGES, (index + 1) * MAX_QUEUE_BATCH_MESSAGES),
  );
