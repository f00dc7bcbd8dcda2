import * as z from "zod";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { MAX_QUEUE_BATCH_MESSAGES, PLATFORM_DEADLINE_MILLISECONDS } from "../../shared/limits.ts";
import { log } from "../log.ts";
import { withDeadline } from "../platform.ts";

/** A queue message: this event may be due. It carries IDs only; D1 has the event. */
export const wakeUp = z.object({ applicationId, eventId: z.string() });

export type WakeUp = z.infer<typeof wakeUp>;

export interface DelayedWakeUp {
  body: WakeUp;
  delaySeconds: number;
}

/** Sends wake-ups, best effort: the sweep finds the event of a lost one within a minute. */
export function sendWakeUps(
  queue: Queue<WakeUp>,
  applicationId: ApplicationId,
  eventIds: readonly string[],
): Promise<void> {
  return sendDelayed(
    queue,
    eventIds.map((eventId) => ({ body: { applicationId, eventId }, delaySeconds: 0 })),
  );
}

/** Like `sendWakeUps`, with a delay for each message. */
export async function sendDelayed(queue: Queue<WakeUp>, messages: readonly DelayedWakeUp[]): Promise<void> {
  for (let start = 0; start < messages.length; start += MAX_QUEUE_BATCH_MESSAGES) {
    const batch = messages.slice(start, start + MAX_QUEUE_BATCH_MESSAGES);
    try {
      await withDeadline("queue", PLATFORM_DEADLINE_MILLISECONDS, () => queue.sendBatch(batch));
    } catch (error) {
      for (const { body } of batch) logLost(body, error);
    }
  }
}

function logLost({ applicationId, eventId }: WakeUp, error: unknown): void {
  log("warn", { event: "wake-up-lost", application: applicationId, eventId, error });
}
