import type { WakeUp } from "../../../../src/worker/webhooks/wake-up.ts";
import { standIn } from "../../stand-in.ts";
import { Member } from "../member.ts";
import { requireProcess } from "./process.ts";

/** As wrangler.toml has it. */
const MAX_BATCH_MESSAGES = 12;
const MAX_RETRIES = 5;
const RETRY_DELAY_MILLISECONDS = 10_000;

interface Message {
  id: string;
  body: WakeUp;
  attempts: number;
}

/** The queue: at least once, in no order. */
export class QueueServer extends Member {
  readonly #dice = this.world.dice.of("queue");
  #ready: Message[] = [];
  #sent = 0;

  take(body: WakeUp, delaySeconds: number): void {
    const { timeline, faults } = this.world;
    const fault = faults.draw("message");
    const message = { id: `message ${++this.#sent}`, body, attempts: 0 };
    if (fault === "before") return;
    const arrive = (milliseconds: number) =>
      timeline.after(delaySeconds * 1000 + milliseconds, () => this.#put(message));
    arrive(fault === "late" ? this.#dice.below(300_000) : this.#dice.below(50));
    if (fault === "twice") arrive(this.#dice.below(120_000));
  }

  #put(message: Message): void {
    this.#ready.push(message);
    this.world.timeline.after(this.#dice.below(5), () => void this.#deliver());
  }

  async #deliver(): Promise<void> {
    if (this.#ready.length === 0) return;
    const inAnyOrder = this.#dice.shuffled(this.#ready);
    const messages = inAnyOrder.slice(0, MAX_BATCH_MESSAGES);
    this.#ready = inAnyOrder.slice(MAX_BATCH_MESSAGES);
    const isDead = messages.some(({ attempts }) => attempts > MAX_RETRIES);
    const name = isDead ? "badge-webhooks-dead" : "badge-webhooks";
    const retried = new Set<Message>();
    const brought = messages.map((message) => ({ ...message, retry: () => void retried.add(message) }));
    const batch = standIn<MessageBatch>("a batch of messages", { queue: name, messages: brought });
    const isHandled = await this.world.isolates.consume(batch);
    for (const message of isHandled ? retried : messages) {
      const again = { ...message, attempts: message.attempts + 1 };
      this.world.timeline.after(RETRY_DELAY_MILLISECONDS, () => this.#put(again));
    }
  }
}

/** The queue as the service sees it, in whatever process the service runs. */
export const queueBinding = standIn<Queue<WakeUp>>("the queue", {
  send: (body: WakeUp, options: QueueSendOptions = {}) => send([{ body, ...options }]),
  sendBatch: (messages: MessageSendRequest<WakeUp>[]) => send(messages),
});

function send(messages: readonly MessageSendRequest<WakeUp>[]): Promise<void> {
  const process = requireProcess();
  const { wire, queue } = process.world;
  return wire.call(process, {
    part: "queue",
    what: `queue takes ${messages.length}`,
    effect: () => {
      for (const { body, delaySeconds = 0 } of messages) queue.take(body, delaySeconds);
    },
    error: () => new Error("Queue is overloaded."),
  });
}
