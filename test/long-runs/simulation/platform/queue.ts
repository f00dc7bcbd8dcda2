import { consumeDeliveries } from "../../../../src/worker/webhooks/consumer.ts";
import type { DeliveryMessage } from "../../../../src/worker/webhooks/delivery-message.ts";
import { standIn } from "../../stand-in.ts";
import { Member } from "../member.ts";
import { requireProcess } from "./process.ts";

/** As wrangler.toml has it. */
const MAX_BATCH_MESSAGES = 5;
const RETRY_DELAY_MILLISECONDS = 10_000;

/** The queue: at least once, in no order. It gives nothing up here. */
export class QueueServer extends Member {
  readonly #dice = this.world.dice.of("queue");
  #ready: DeliveryMessage[] = [];

  take(message: DeliveryMessage, delayMilliseconds: number): void {
    this.world.timeline.after(delayMilliseconds + this.#dice.below(50), () => {
      this.#ready.push(message);
      this.world.timeline.after(this.#dice.below(5), () => void this.#deliver());
    });
  }

  async #deliver(): Promise<void> {
    if (this.#ready.length === 0) return;
    const { isolates } = this.world;
    const inAnyOrder = this.#dice.shuffled(this.#ready);
    const messages = inAnyOrder.slice(0, MAX_BATCH_MESSAGES);
    this.#ready = inAnyOrder.slice(MAX_BATCH_MESSAGES);
    const retried = new Set<DeliveryMessage>();
    const brought = messages.map((body) => ({ body, retry: () => void retried.add(body) }));
    const batch = standIn<MessageBatch>("a batch of messages", { queue: "badge-webhooks", messages: brought });
    const handled = await isolates.enter((contextOf) => consumeDeliveries(contextOf, batch)).catch(() => null);
    for (const message of handled ? retried : messages) this.take(message, RETRY_DELAY_MILLISECONDS);
  }
}

/** The queue as the service sees it, in whatever process the service runs. */
export const queueBinding = standIn<Queue<DeliveryMessage>>("the queue", {
  send: (body: DeliveryMessage, options: QueueSendOptions = {}) => send([{ body, ...options }]),
  sendBatch: (messages: MessageSendRequest<DeliveryMessage>[]) => send(messages),
});

function send(messages: readonly MessageSendRequest<DeliveryMessage>[]): Promise<void> {
  const { wire, queue } = requireProcess().world;
  return wire.call({
    part: "queue",
    what: `queue takes ${messages.length}`,
    effect: () => {
      for (const { body, delaySeconds = 0 } of messages) queue.take(body, delaySeconds * 1000);
    },
    error: () => new Error("Queue is overloaded."),
  });
}
