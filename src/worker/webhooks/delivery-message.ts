import * as z from "zod";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { PLATFORM_DEADLINE_MILLISECONDS } from "../../shared/limits/platform-limits.ts";
import { MAX_QUEUE_BATCH_MESSAGES } from "../../shared/limits/sweep-limits.ts";
import { log } from "../log.ts";
import { withDeadline } from "../platform.ts";

/** A queue message: this event may be due. It carries IDs only; D1 has the event. */
export const deliveryMessage = z.object({ applicationId, eventId: z.string() });

export type DeliveryMessage = z.infer<typeof deliveryMessage>;

export interface DelayedMessage {
  body: DeliveryMessage;
  delaySeconds: number;
}

/** Enqueues deliveries, best effort: the tick finds the event of a lost message within about a minute. */
export function enqueueDeliveries(
  queue: Queue<DeliveryMessage>,
  applicationId: ApplicationId,
  eventIds: readonly string[],
): Promise<void> {
  return enqueueDelayed(
    queue,
    eventIds.map((eventId) => ({ body: { applicationId, eventId }, delaySeconds: 0 })),
  );
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
export async function enqueueAll(queue: Queue<DeliveryMessage>, messages: readonly DeliveryMessage[]): Promise<void> {
  for (const batch of batchesOf(messages.map((body) => ({ body })))) await sendBatch(queue, batch);
}

const sendBatch = (queue: Queue<DeliveryMessage>, batch: readonly MessageSendRequest<DeliveryMessage>[]) =>
  withDeadline("queue", PLATFORM_DEADLINE_MILLISECONDS, () => queue.sendBatch(batch));

const batchesOf = <Sent>(messages: readonly Sent[]): Sent[][] =>
  Array.from({ length: Math.ceil(messages.length / MAX_QUEUE_BATCH_MESSAGES) }, (_, index) =>
    messages.slice(index * MAX_QUEUE_BATCH_MESSAGES, (index + 1) * MAX_QUEUE_BATCH_MESSAGES),
  );
