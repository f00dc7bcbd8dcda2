import { setTimeout as wait } from "node:timers/promises";
import { eq } from "drizzle-orm";
import { heartbeat } from "../../shared/schema.ts";
import { TICK_MESSAGE } from "../../shared/tick-message.ts";
import type { Homes } from "../platform/homes.ts";
import { queueSender } from "../platform/queue.ts";
import type { Deployment } from "./deployment.ts";

/** A new queue takes some seconds to deliver. */
const LIMIT_MILLISECONDS = 30_000;
const POLL_MILLISECONDS = 500;

/** When the scheduler of each home last ticked, in milliseconds; null: never. */
export const lastTicks = (homes: Homes): Promise<(number | null)[]> =>
  homes.map(async ({ database }) => {
    const [row] = await database.run((orm) =>
      orm.select({ tickedAt: heartbeat.tickedAt }).from(heartbeat).where(eq(heartbeat.id, 1)),
    );
    return row?.tickedAt ?? null;
  });

/**
 * Makes the scheduler of every home tick, by a message to home 1's queue, and waits for the ticks.
 *
 * @returns how many milliseconds they took; null when a home has not ticked within half a minute
 * @throws UserError when there is no such queue
 */
export async function tickNow(deployment: Deployment, homes: Homes): Promise<number | null> {
  const before = await lastTicks(homes);
  const startedAt = Date.now();
  await queueSender(deployment.account, deployment.target)(1, TICK_MESSAGE);
  while (Date.now() - startedAt < LIMIT_MILLISECONDS) {
    const after = await lastTicks(homes);
    if (after.every((tick, index) => tick !== null && tick !== before[index])) return Date.now() - startedAt;
    await wait(POLL_MILLISECONDS);
  }
  return null;
}

/** Makes the schedulers tick if one never has. Until then, script commands wait and no replica is trusted. */
export async function startSchedulers(
  deployment: Deployment,
  homes: Homes,
  note: (line: string) => void,
): Promise<void> {
  if ((await lastTicks(homes)).every((tick) => tick !== null)) return;
  const took = await tickNow(deployment, homes);
  note(
    took === null
      ? "! The first tick has not happened yet: the platform's cron starts within 15 minutes. Until then, commands for badges and users wait."
      : "✓ First tick",
  );
}
