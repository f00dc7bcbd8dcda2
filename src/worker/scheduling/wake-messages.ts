import { homeOf } from "../../shared/homes.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { HOME_RECIPIENT, type Recipient, wakeMessage } from "../../shared/script-commands.ts";
import { isTickMessage } from "../../shared/tick-message.ts";
import type { Context } from "../context.ts";
import { firstHome } from "../homes.ts";
import { log } from "../log.ts";
import { enqueueDueEvents } from "../webhooks/backlog.ts";
import { wakeHomeScheduler } from "./scheduler-client.ts";

/** The wake-up messages in a batch of the webhook queue, separated from the messages about webhook events. */
export interface WakeMessages {
  /** Whether the batch asks every home's scheduler to tick. */
  isTick: boolean;
  /** The recipients that have waiting commands of the script. */
  recipients: Recipient[];
  others: Pick<MessageBatch, "queue" | "messages">;
}

export function takeWakeMessages(batch: MessageBatch): WakeMessages {
  const recipients = new Set<Recipient>();
  let isTick = false;
  const messages = batch.messages.filter(({ body }) => {
    const message = wakeMessage.safeParse(body).data;
    if (message) recipients.add(message.wake);
    const isTickNow = isTickMessage(body);
    isTick ||= isTickNow;
    return !message && !isTickNow;
  });
  return { isTick, recipients: [...recipients], others: { queue: batch.queue, messages } };
}

/** Wakes the allocator, and enqueues due events, because the script also sends this message when it has made an event due. */
const wakeApplication = (context: Context | undefined, applicationId: ApplicationId) =>
  context && Promise.all([context.allocator.wake(applicationId, false), enqueueDueEvents(context)]);

/**
 * Makes each recipient carry out its waiting commands of the script. The tick retries failures.
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
        if (recipient === HOME_RECIPIENT) await wakeHomeScheduler(env, firstHome(env));
        else await wakeApplication(contextOf(homeOf(recipient)), recipient);
      } catch (error) {
        log("warn", { event: "recipient-not-woken", recipient, error });
      }
    }),
  );
}
