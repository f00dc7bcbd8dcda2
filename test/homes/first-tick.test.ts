import { createExecutionContext, createMessageBatch, getQueueResult } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { TICK_MESSAGE } from "../../src/shared/tick-message.ts";
import worker from "../../src/worker/index.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { boundHome } from "../support/home.ts";

useQuietLog();

const tickedAt = async (home: number): Promise<number | null> =>
  boundHome(home).d1.prepare("SELECT ticked_at FROM heartbeat WHERE id = 1").first<number>("ticked_at");

it("a message makes the scheduler of every home tick, and is no webhook event (contract sections 17 and 25)", async () => {
  expect([await tickedAt(1), await tickedAt(2)]).toEqual([null, null]);
  const message = { id: "tick", timestamp: new Date(), attempts: 1, body: TICK_MESSAGE };
  const batch = createMessageBatch("badge-webhooks", [message]);
  const execution = createExecutionContext();
  await worker.queue(batch, env, execution);
  const { outcome, retryMessages } = await getQueueResult(batch, execution);
  expect({ outcome, retryMessages }).toEqual({ outcome: "ok", retryMessages: [] });
  expect([await tickedAt(1), await tickedAt(2)]).toEqual([expect.any(Number), expect.any(Number)]);
});
