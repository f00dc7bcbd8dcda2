import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { type EventId, markDeadLettered } from "../storage/webhook-events.ts";
import { deliverEvents } from "./deliver.ts";
import { wakeUp } from "./wake-up.ts";

/** Handles a batch of the webhook queue. If this throws, the queue redelivers the whole batch. */
export async function consumeWakeUps(context: Context, batch: MessageBatch): Promise<void> {
  const ids = readBatch(batch);
  if (ids.length > 0) await deliverEvents(context, ids);
}

/**
 * Handles messages that the queue gave up on after D1 had failed for too long. The sweep still finds their events in D1;
 * this only makes the failure visible.
 */
export async function consumeDeadLetters(context: Context, batch: MessageBatch): Promise<void> {
  for (const id of readBatch(batch)) {
    log("error", { event: "dead-letter", application: id.applicationId, eventId: id.eventId });
    await markDeadLettered(context.db, id);
  }
}

/** A message that does not parse is logged and dropped: redelivery would not fix it. */
function readBatch(batch: MessageBatch): EventId[] {
  return batch.messages.flatMap(({ id, body }) => {
    const parsed = wakeUp.safeParse(body);
    if (parsed.success) return [parsed.data];
    log("error", { event: "message-not-understood", queue: batch.queue, messageId: id });
    return [];
  });
}
