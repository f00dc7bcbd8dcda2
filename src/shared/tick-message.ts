import * as z from "zod";

/**
 * A message of the webhook queue that makes the scheduler of every home tick. `deploy` sends the first one over HTTP: a new cron trigger
 * takes up to 15 minutes to start (Workers: Cron Triggers). Several do no harm, and neither does a lost one.
 */
export const TICK_MESSAGE = { kind: "tick" } as const;

const tickMessage = z.object({ kind: z.literal(TICK_MESSAGE.kind) });

export const isTickMessage = (body: unknown): boolean => tickMessage.safeParse(body).success;
