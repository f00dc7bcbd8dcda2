import { homeOf } from "../../shared/homes.ts";
import { HOME_RECIPIENT, type Recipient, wakeMessage } from "../../shared/script-commands.ts";
import type { Context } from "../context.ts";
import { firstHome } from "../homes.ts";
import { log } from "../log.ts";
import { wakeHomeClock } from "./client.ts";

/** Takes the script's wake-ups out of a batch of the webhook queue. @returns whom to wake, and the other messages */
export function takeWakeMessages(batch: MessageBatch): { recipients: Recipient[]; others: MessageBatch } {
  const recipients = new Set<Recipient>();
  const messages = batch.messages.filter(({ body }) => {
    const message = wakeMessage.safeParse(body).data;
    if (message) recipients.add(message.wake);
    return !message;
  });
  return { recipients: [...recipients], others: recipients.size === 0 ? batch : withMessages(batch, messages) };
}

/** A batch with some of its messages. */
const withMessages = (batch: MessageBatch, messages: readonly Message[]): MessageBatch => ({
  queue: batch.queue,
  metadata: batch.metadata,
  messages,
  retryAll: (options) => batch.retryAll(options),
  ackAll: () => batch.ackAll(),
});

/**
 * Has each of them carry out the commands of the script that wait for it (contract section 21). The minute's tick repeats what
 * fails.
 *
 * @param contextOf a home's context; undefined if the home is not bound
 */
export async function wakeRecipients(
  env: Env,
  contextOf: (home: number) => Context | undefined,
  recipients: readonly Recipient[],
): Promise<void> {
  await Promise.all(
    recipients.map(async (recipient) => {
      try {
        if (recipient === HOME_RECIPIENT) await wakeHomeClock(env, firstHome(env));
        else await contextOf(homeOf(recipient))?.allocator.wake(recipient, false);
      } catch (error) {
        log("warn", { event: "recipient-not-woken", recipient, error });
      }
    }),
  );
}
