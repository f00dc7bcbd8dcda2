import { homeOf } from "../../shared/homes.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { markDeadLettered } from "../storage/webhook-events.ts";
import { deliverEvents } from "./deliver.ts";
import { type DeliveryMessage, deliveryMessage } from "./delivery-message.ts";

/** The context of a home; undefined if it is not bound. */
export type ContextOf = (home: number) => Context | undefined;

/** A batch of messages, or a part of one. */
type Messages = Pick<MessageBatch, "queue" | "messages">;

/** One home's part of a batch. */
interface HomeBatch {
  context: Context;
  messages: readonly { message: Message; id: DeliveryMessage }[];
}

/** Handles a batch of the webhook queue. If a home's D1 fails, only that home's messages are redelivered. */
export const consumeDeliveries = (contextOf: ContextOf, batch: Messages): Promise<void> =>
  inEachHome(contextOf, batch, async (context, ids) => {
    await scheduler.wait(Math.min(...ids.map(({ afterMilliseconds = 0 }) => afterMilliseconds)));
    await deliverEvents(context, ids);
  });

/**
 * Handles messages that the queue gave up on because D1 failed for too long. This only logs and records the failure: the
 * tick finds their events in D1.
 */
export const consumeDeadLetters = (contextOf: ContextOf, batch: Messages): Promise<void> =>
  inEachHome(contextOf, batch, async ({ db }, ids) => {
    for (const { applicationId, eventId } of ids) {
      log("error", { event: "dead-letter", application: applicationId, eventId });
    }
    await markDeadLettered(db, ids);
  });

async function inEachHome(
  contextOf: ContextOf,
  batch: Messages,
  handle: (context: Context, ids: readonly DeliveryMessage[]) => Promise<void>,
): Promise<void> {
  await Promise.all(
    readBatch(contextOf, batch).map(async ({ context, messages }) => {
      try {
        await handle(
          context,
          messages.map(({ id }) => id),
        );
      } catch (error) {
        log("warn", { event: "messages-postponed", home: context.home, messages: messages.length, error });
        for (const { message } of messages) message.retry();
      }
    }),
  );
}

/** A malformed message is logged and dropped: redelivery would not fix it. */
function readBatch(contextOf: ContextOf, batch: Messages): HomeBatch[] {
  const read = batch.messages.flatMap((message) => {
    const { data: id } = deliveryMessage.safeParse(message.body);
    if (id) return [{ message, id }];
    log("error", { event: "malformed-message", queue: batch.queue, messageId: message.id });
    return [];
  });
  return [...Map.groupBy(read, ({ id }) => homeOf(id.applicationId))].flatMap(([home, messages]) => {
    const context = contextOf(home);
    if (context) return [{ context, messages }];
    log("error", { event: "home-not-bound", home, messages: messages.length });
    return [];
  });
}
