import * as z from "zod";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { PLATFORM_DEADLINE_MILLISECONDS } from "../../shared/limits/platform-limits.ts";
import { MAX_QUEUE_BATCH_MESSAGES, MAX_QUEUE_DELAY_SECONDS } from "../../shared/limits/sweep-limits.ts";
import { DELIVERIES_PER_SECOND } from "../../shared/limits/webhook-limits.ts";
import { log } from "../log.ts";
import { withDeadline } from "../platform.ts";

/** A queue message: this event may be due. It carries IDs only; D1 has the event. */
export const deliveryMessage = z.object({ applicationId, eventId: z.string() });

export type DeliveryMessage = z.infer<typeof deliveryMessage>;

export interface DelayedMessage {
  body: DeliveryMessage;
  delaySeconds: number;
}

/**
 * Messages of events, of which so many of each application begin each second: each delivery writes D1, which is left to other
 * applications meanwhile (contract section 21).
 *
 * @param delay of the first, in milliseconds
 */
export function paced(ids: readonly DeliveryMessage[], delay = 0): DelayedMessage[] {
  const counts = new Map<ApplicationId, number>();
  return ids.map((body) => {
    const before = counts.get(body.applicationId) ?? 0;
    counts.set(body.applicationId, before + 1);
    return { body, delaySeconds: Math.floor(delay / 1000 + before / DELIVERIES_PER_SECOND) };
  });
}

/**
 * Enqueues deliveries, best effort: the tick finds the event of a lost message within about a minute, and those that are too far
 * ahead for the queue.
 *
 * @param delay of the first, in milliseconds
 */
export function enqueueDeliveries(
  queue: Queue<DeliveryMessage>,
  applicationId: ApplicationId,
  eventIds: readonly string[],
  delay = 0,
): Promise<void> {
  const ids = eventIds.map((eventId) => ({ applicationId, eventId }));
  const messages = paced(ids, delay).filter(({ delaySeconds }) => delaySeconds <= MAX_QUEUE_DELAY_SECONDS);
  return enqueueDelayed(queue, messages);
}

/** Like `enqueueDeliveries`, with a delay for each message. */
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
