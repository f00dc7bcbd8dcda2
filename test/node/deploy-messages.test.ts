import { once } from "node:events";
import { createServer } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { untilHealthy } from "../../src/admin/deploy/address.ts";
import { openAccount } from "../../src/admin/platform/cloudflare.ts";
import { knownErrorIn } from "../../src/admin/platform/rights.ts";
import { warningsIn } from "../../src/admin/platform/wrangler.ts";

it("no account is chosen where wrangler would choose another one (contract section 25)", async () => {
  process.env.CLOUDFLARE_ACCOUNT_ID = "b".repeat(32);
  await expect(openAccount("a".repeat(32))).rejects.toThrow(
    /^CLOUDFLARE_ACCOUNT_ID is b{32}, and account_id in wrangler\.toml is a{32}: unset the one, or change the other\.$/,
  );
});

it("a deployment prints what it waits for until /health responds (contract section 25)", async () => {
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
  expect(notes).toEqual([`… ${origin}/health: it responded 503; waiting for up to two minutes`]);
});

it("a deployment waits for its own release, because the previous Worker may still respond (contract section 25)", async () => {
  const builds = ["0.9.0+aaaaaaaaaaaa", "0.9.0+bbbbbbbbbbbb"];
  const server = createServer((_, response) => {
    const [release = ""] = builds.length > 1 ? builds.splice(0, 1) : builds;
    response.writeHead(200, { release }).end('{"status":"ok"}');
  }).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.close();
  });
  await once(server, "listening");
  const bound = server.address();
  const origin = `http://127.0.0.1:${typeof bound === "object" ? bound?.port : ""}`;
  const notes: string[] = [];
  await untilHealthy(origin, "production", (line) => notes.push(line), "0.9.0+bbbbbbbbbbbb");
  const before = "release 0.9.0+aaaaaaaaaaaa responded, but 0.9.0+bbbbbbbbbbbb was uploaded";
  expect(notes).toEqual([`… ${origin}/health: ${before}; waiting for up to two minutes`]);
});

it("a deployment shows wrangler's warnings, except the one about local development's homes (contract section 25)", () => {
  const about = (name: string) =>
    `    - There is a d1_databases binding with name "${name}" at the top level, but not on "env.production".\n      This is not what you probably want.\n      Please add a binding for "${name}" to "env.production.d1_databases.bindings".\n`;
  const head =
    '▲ [WARNING] Processing wrangler.toml configuration:\n\n  - "env.production" environment configuration\n';
  expect(warningsIn(`${head}${about("DB_2")}\n▲ [WARNING] The queue is slow\n  today\n\nDone\n`)).toEqual([
    "The queue is slow today",
  ]);
  expect(warningsIn(`${head}${about("DB_2")}    - Unexpected fields found: "roots"\n`)).toEqual([
    expect.stringContaining('Unexpected fields found: "roots"'),
  ]);
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
