import * as z from "zod";
import { PLATFORM_DEADLINE_MILLISECONDS } from "../../shared/limits.ts";
import { log } from "../log.ts";
import { withDeadline } from "../platform.ts";

/** A message of the queue: look at this event now. It carries IDs only; D1 says what there is to do. */
export const wakeUp = z.object({ applicationId: z.string(), eventId: z.string() });

export type WakeUp = z.infer<typeof wakeUp>;

export interface DelayedWakeUp {
  body: WakeUp;
  delaySeconds: number;
}

/** Sends wake-ups. That one is lost is no loss: the sweep finds the event within a minute. */
export function sendWakeUps(queue: Queue<WakeUp>, applicationId: string, eventIds: readonly string[]): Promise<void> {
  return sendDelayed(
    queue,
    eventIds.map((eventId) => ({ body: { applicationId, eventId }, delaySeconds: 0 })),
  );
}

/** The same, each with a delay of its own. */
export async function sendDelayed(queue: Queue<WakeUp>, messages: readonly DelayedWakeUp[]): Promise<void> {
  if (messages.length === 0) return;
  try {
    await withDeadline("queue", PLATFORM_DEADLINE_MILLISECONDS, () => queue.sendBatch(messages));
  } catch (error) {
    for (const { body } of messages) noteLost(body, error);
  }
}

function noteLost({ applicationId, eventId }: WakeUp, error: unknown): void {
  log("warn", { event: "wake-up-lost", application: applicationId, eventId, error });
}
