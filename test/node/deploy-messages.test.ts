import { once } from "node:events";
import { createServer } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { untilHealthy } from "../../src/admin/deploy/address.ts";
import { lackingRightIn } from "../../src/admin/platform/rights.ts";

it("a deployment says what it waits for while the service is not well yet (contract section 25)", async () => {
  let isWell = false;
  const server = createServer((_, response) => {
    response.writeHead(isWell ? 200 : 503).end(isWell ? '{"status":"ok"}' : "");
    isWell = true;
  }).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.close();
  });
  await once(server, "listening");
  const bound = server.address();
  const origin = `http://127.0.0.1:${typeof bound === "object" ? bound?.port : ""}`;
  const notes: string[] = [];
  await untilHealthy(origin, "production", (line) => notes.push(line));
  expect(notes).toEqual([`… ${origin}/health: it responded 503; waiting for two minutes at most`]);
});

it("a refusal that wrangler has in a list of several names the right and the platform's words (contract section 25)", () => {
  const printed = `✘ [ERROR] Some triggers were not updated:
  - A request to the Cloudflare API (/accounts/1/queues/2/consumers) failed.
    - Authentication error [code: 10000]`;
  expect(lackingRightIn(printed)?.message).toContain(
    'lacks the right "Account, Queues, Edit" (Authentication error [code: 10000])',
  );
});
