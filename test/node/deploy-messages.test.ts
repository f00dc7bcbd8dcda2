import { once } from "node:events";
import { createServer } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { untilHealthy } from "../../src/admin/deploy/address.ts";
import { knownErrorIn } from "../../src/admin/platform/rights.ts";

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

it.each([
  ["/accounts/1/queues/2/consumers", "Account, Queues, Edit"],
  ["/accounts/1/workers/scripts/badges/secrets", "Account, Workers Scripts, Edit"],
])(
  "a refusal that wrangler has in a list names the right and the platform's words (contract section 25): %s",
  (path, right) => {
    const printed = `✘ [ERROR] Some triggers were not updated:
  - A request to the Cloudflare API (${path}) failed.
    - Authentication error [code: 10000]`;
    expect(knownErrorIn(printed)?.message).toContain(`lacks the right "${right}" (Authentication error [code: 10000])`);
  },
);
