import { homeOf } from "../../shared/homes.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { type EventId, markDeadLettered } from "../storage/webhook-events.ts";
import { deliverEvents } from "./deliver.ts";
import { wakeUp } from "./wake-up.ts";

/** The context of a home; undefined if it is not bound. */
export type ContextOf = (home: number) => Context | undefined;

/** One home's part of a batch. */
interface HomeBatch {
  context: Context;
  messages: readonly { message: Message; id: EventId }[];
}

/**
 * Handles a batch of the webhook queue: one claim for each home. If a home's claim fails, only that home's messages are
 * redelivered.
 */
export async function consumeWakeUps(contextOf: ContextOf, batch: MessageBatch): Promise<void> {
  const homes = readBatch(contextOf, batch);
  const claims = deliverEvents(homes.map(({ context, messages }) => ({ context, ids: messages.map(({ id }) => id) })));
  await Promise.all(homes.map((home, index) => retryIfFailed(home, async () => claims[index])));
}

/**
 * Handles messages that the queue gave up on after D1 had failed for too long. The sweep still finds their events in D1;
 * this only makes the failure visible.
 */
export async function consumeDeadLetters(contextOf: ContextOf, batch: MessageBatch): Promise<void> {
  await Promise.all(
    readBatch(contextOf, batch).map((home) =>
      retryIfFailed(home, async () => {
        for (const { id } of home.messages) {
          log("error", { event: "dead-letter", application: id.applicationId, eventId: id.eventId });
          await markDeadLettered(home.context.db, id);
        }
      }),
    ),
  );
}

/** A message that is not understood is logged and dropped: redelivery would not fix it. */
function readBatch(contextOf: ContextOf, batch: MessageBatch): HomeBatch[] {
  const read = batch.messages.flatMap((message) => {
    const { data: id } = wakeUp.safeParse(message.body);
    if (id) return [{ message, id }];
    log("error", { event: "message-not-understood", queue: batch.queue, messageId: message.id });
    return [];
  });
  return [...Map.groupBy(read, ({ id }) => homeOf(id.applicationId))].flatMap(([home, messages]) => {
    const context = contextOf(home);
    if (context) return [{ context, messages }];
    log("error", { event: "home-not-bound", home, messages: messages.length });
    return [];
  });
}

async function retryIfFailed({ context, messages }: HomeBatch, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    log("warn", { event: "messages-postponed", home: context.home, messages: messages.length, error });
    for (const { message } of messages) message.retry();
  }
}
