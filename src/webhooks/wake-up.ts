import { z } from "zod";
import { log } from "../log.ts";

/** A message of the queue: look at this event now. It carries IDs only; D1 says what there is to do. */
export const wakeUp = z.object({ applicationId: z.string(), eventId: z.string() });

export type WakeUp = z.infer<typeof wakeUp>;

/** Sends a wake-up. That it is lost is no loss: the sweep finds the event within a minute. */
export async function sendWakeUp(queue: Queue<WakeUp>, message: WakeUp, delaySeconds = 0): Promise<void> {
  try {
    await queue.send(message, delaySeconds > 0 ? { delaySeconds } : {});
  } catch (error) {
    log("warn", { event: "wake-up-lost", application: message.applicationId, eventId: message.eventId, error });
  }
}
