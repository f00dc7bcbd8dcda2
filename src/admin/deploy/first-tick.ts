import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod";
import { queueBindingOf } from "../../shared/homes.ts";
import { TICK_MESSAGE } from "../../shared/tick-message.ts";
import type { Homes } from "../platform/homes.ts";
import type { Deployment } from "./deployment.ts";

/** A queue that was made a moment ago takes some seconds. */
const LIMIT_MILLISECONDS = 30_000;
const POLL_MILLISECONDS = 500;

const ticked = z.tuple([z.object({ tickedAt: z.number().nullable() })]);

/** When the scheduler of each home last ticked, in milliseconds; null: never. */
export const lastTicks = (homes: Homes): Promise<(number | null)[]> =>
  homes.everywhere(async ({ database }) => {
    const sql = "SELECT (SELECT ticked_at FROM heartbeat WHERE id = 1) AS tickedAt";
    const { results } = await database.run((_, d1) => d1.prepare(sql).all());
    return ticked.parse(results)[0].tickedAt;
  });

const queues = z.array(z.object({ queue_id: z.string(), queue_name: z.string() }));

/** Makes the scheduler of every home tick, through the queue of home 1. @returns false when there is no such queue */
export async function sendTick(deployment: Deployment): Promise<boolean> {
  const name = deployment.target.producers.find(({ binding }) => binding === queueBindingOf(1))?.queue ?? "";
  const found = await deployment.find(queues, `/queues?name=${encodeURIComponent(name)}`);
  const queue = found?.find(({ queue_name: each }) => each === name);
  if (queue === undefined) return false;
  const body = { body: TICK_MESSAGE, content_type: "json" };
  await deployment.account.call(z.unknown(), { method: "POST", path: `/queues/${queue.queue_id}/messages`, body });
  return true;
}

/**
 * Makes the scheduler of every home tick and waits until it has.
 *
 * @returns milliseconds until then; null when some have not within half a minute
 */
export async function tickNow(deployment: Deployment, homes: Homes): Promise<number | null> {
  const before = await lastTicks(homes);
  const startedAt = Date.now();
  if (!(await sendTick(deployment))) return null;
  while (Date.now() - startedAt < LIMIT_MILLISECONDS) {
    const after = await lastTicks(homes);
    if (after.every((tick, index) => tick !== null && tick !== before[index])) return Date.now() - startedAt;
    await wait(POLL_MILLISECONDS);
  }
  return null;
}

/** The first tick of homes that have had none. Commands of the script wait for it, and near reads miss until then. */
export async function startClocks(deployment: Deployment, homes: Homes, note: (line: string) => void): Promise<void> {
  if ((await lastTicks(homes)).every((tick) => tick !== null)) return;
  const took = await tickNow(deployment, homes);
  note(
    took === null
      ? "! The first tick has not come yet: the platform's cron starts within 15 minutes. Until then commands for badges and users wait."
      : "✓ First tick of the clock",
  );
}
