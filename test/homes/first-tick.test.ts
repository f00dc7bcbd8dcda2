import { createExecutionContext, createMessageBatch, getQueueResult } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import worker from "../../src/worker/index.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { boundHome } from "../support/home.ts";

useQuietLog();

const tickedAt = async (home: number): Promise<number | null> =>
  boundHome(home).d1.prepare("SELECT ticked_at FROM heartbeat WHERE id = 1").first<number>("ticked_at");

/** The queue brings one message. */
async function bring(body: unknown) {
  const batch = createMessageBatch("badge-webhooks", [{ id: "message", timestamp: new Date(), attempts: 1, body }]);
  const execution = createExecutionContext();
  await worker.queue(batch, env, execution);
  return getQueueResult(batch, execution);
}

it("a message makes the scheduler of every home tick, and is no webhook event; another message does not (contract sections 17 and 25)", async () => {
  await bring({});
  await bring({ kind: "" });
  expect([await tickedAt(1), await tickedAt(2)]).toEqual([null, null]);
  // As the script of any release sends it.
  expect(await bring({ kind: "tick" })).toMatchObject({ outcome: "ok", retryMessages: [] });
  expect([await tickedAt(1), await tickedAt(2)]).toEqual([expect.any(Number), expect.any(Number)]);
});
