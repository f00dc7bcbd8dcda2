import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { workerSecrets } from "../../src/admin/platform/worker-secrets.ts";
import { deleteSealingSecrets } from "../../src/admin/sealing-key/deployed.ts";

/** Names and values, as the account has them. */
const account = new Map<string, string>();
/** The part of Cloudflare's API that wrangler uses for secrets. wrangler itself is real. */
let api: Server;

const SECRETS = "/accounts/an-account/workers/scripts/badge-distribution-production/secrets";

const newSecret = z.object({ name: z.string(), text: z.string() });

async function respond(method: string, path: string, body: string): Promise<unknown> {
  if (path === SECRETS && method === "GET") return [...account.keys()].map((name) => ({ name, type: "secret_text" }));
  if (path === SECRETS && method === "PUT") {
    const { name, text: value } = newSecret.parse(JSON.parse(body));
    account.set(name, value);
    return { name };
  }
  if (method === "DELETE" && account.delete(path.slice(SECRETS.length + 1))) return null;
  throw new Error(`${method} ${path}`);
}

beforeAll(async () => {
  api = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? "", "http://localhost");
    const result = await respond(request.method ?? "", pathname, await text(request)).catch(() => undefined);
    response.writeHead(result === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify({ success: result !== undefined, errors: [], messages: [], result }));
  }).listen(0, "127.0.0.1");
  await once(api, "listening");
  const address = api.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  process.env.CLOUDFLARE_API_BASE_URL = `http://127.0.0.1:${address.port}`;
  process.env.CLOUDFLARE_API_TOKEN = "a-token";
  process.env.CLOUDFLARE_ACCOUNT_ID = "an-account";
});

afterAll(() => {
  api.close();
});

describe("the secrets of a deployed Worker, through wrangler (contract section 9)", () => {
  it("are set by name, listed and deleted, and the value is on no command line", async () => {
    account.set("SEALING_KEY_1", "of release 1.0").set("OTHER", "kept");
    const notes: string[] = [];
    const secrets = workerSecrets("production", (line) => notes.push(line));
    await secrets.put("SEALING_KEY_1_00ff", "a private half");
    expect(Object.fromEntries(account)).toEqual({
      SEALING_KEY_1: "of release 1.0",
      SEALING_KEY_1_00ff: "a private half",
      OTHER: "kept",
    });
    expect(await deleteSealingSecrets(secrets, 1)).toBe(2);
    expect([...account.keys()]).toEqual(["OTHER"]);
    expect(notes).toEqual([
      "Runs npx wrangler secret put SEALING_KEY_1_00ff --env production   (the private half goes in by standard input)",
      "Runs npx wrangler secret delete SEALING_KEY_1 --env production",
      "Runs npx wrangler secret delete SEALING_KEY_1_00ff --env production",
    ]);
  });
});
