import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { type EventId, markDeadLettered } from "../storage/webhook-events.ts";
import { deliverEvents } from "./deliver.ts";
import { wakeUp } from "./wake-up.ts";

/** Messages of the webhook queue. When this throws, the queue brings all of them again. */
export async function consumeWakeUps(context: Context, batch: MessageBatch): Promise<void> {
  const ids = readBatch(batch);
  if (ids.length > 0) await deliverEvents(context, ids);
}

/**
 * Messages that the queue gave up on, because D1 could not be asked for so long. Their events are still due in D1, where
 * the sweep finds them; this makes it visible.
 */
export async function consumeDeadLetters(context: Context, batch: MessageBatch): Promise<void> {
  for (const id of readBatch(batch)) {
    log("error", { event: "dead-letter", application: id.applicationId, eventId: id.eventId });
    await markDeadLettered(context.db, id);
  }
}

/** A message that is none of ours is logged and dropped: repeating it would not mend it. */
function readBatch(batch: MessageBatch): EventId[] {
  return batch.messages.flatMap(({ id, body }) => {
    const parsed = wakeUp.safeParse(body);
    if (parsed.success) return [parsed.data];
    log("error", { event: "message-not-understood", queue: batch.queue, messageId: id });
    return [];
  });
}
