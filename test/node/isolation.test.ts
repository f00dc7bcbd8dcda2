import { createServer, type RequestListener, type Server } from "node:http";
import { afterAll, describe, expect, it, vi } from "vitest";
import { until } from "../support/until.ts";
import { startHarness } from "./support/harness.ts";
import { listen } from "./support/listen.ts";

const HANGING_EVENTS = 30;
const HEALTHY_EVENTS = 10;

/** What happened at the receivers, in order. The service ends an attempt after 15 s. */
const happened: ("hanging arrived" | "hanging ended" | "healthy arrived")[] = [];
const count = (what: (typeof happened)[number]): number => happened.filter((one) => one === what).length;

const receivers: Server[] = [];
afterAll(() => {
  for (const receiver of receivers) receiver.close().closeAllConnections();
});

/** An application whose webhooks come to a server of this test gets badges. */
async function issueBadges(number: number, receive: RequestListener): Promise<void> {
  const receiver = createServer(receive);
  receivers.push(receiver);
  const { origin, applicationId } = await startHarness({ webhookUrl: `${await listen(receiver)}/` });
  // One after another: see KEEP_ALIVE_MILLISECONDS in shared-service.ts.
  for (let device = 0; device < number; device++) {
    const headers = { applicationid: applicationId, udid: `device-${device}` };
    const body = JSON.stringify({ userId: `user-${device}` });
    const answer = await fetch(new URL("/v1/badge", origin), { method: "POST", headers, body });
    expect([answer.status, await answer.text()]).toEqual([201, expect.any(String)]);
  }
}

describe("a receiver that hangs delays no other application's events (contract section 8)", () => {
  it("a healthy receiver gets all its events from the queue before a hanging one responds to any", async () => {
    const answered = Promise.withResolvers<void>();
    await issueBadges(HANGING_EVENTS, async (_request, response) => {
      happened.push("hanging arrived");
      response.on("close", () => happened.push("hanging ended"));
      await answered.promise;
      response.writeHead(204).end();
    });
    await issueBadges(HEALTHY_EVENTS, (_request, response) => {
      happened.push("healthy arrived");
      response.writeHead(204).end();
    });
    const arrivals = () => [count("hanging arrived"), count("healthy arrived")];
    // All of the hanging ones at once, though a batch has five.
    const all = () => expect(arrivals()).toEqual([HANGING_EVENTS, HEALTHY_EVENTS]);
    await vi.waitFor(all, { timeout: 30_000, interval: 20 });
    expect(happened).not.toContain("hanging ended");
    answered.resolve();
    await until(() => expect(count("hanging ended")).toBe(HANGING_EVENTS));
  }, 120_000);
});
