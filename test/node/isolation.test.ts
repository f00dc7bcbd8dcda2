import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { fileURLToPath } from "node:url";
import type { D1Database } from "@cloudflare/workers-types";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createTestHarness } from "wrangler";
import { createApplication } from "../../src/admin/application/create.ts";
import { Database } from "../../src/admin/platform/database.ts";
import { Homes } from "../../src/admin/platform/homes.ts";
import { sealingKey } from "../../src/shared/schema.ts";
import { generateSealingKey } from "../../src/shared/sealing.ts";
import { until } from "../support/until.ts";

const HANGING_EVENTS = 30;
const HEALTHY_EVENTS = 10;

/** What happened at the receivers, in order. The service ends an attempt after 15 s. */
const happened: ("hanging arrived" | "hanging ended" | "healthy arrived")[] = [];
const count = (what: (typeof happened)[number]): number => happened.filter((one) => one === what).length;

let service: ReturnType<typeof createTestHarness>;
let origin: URL;
let database: Database;
const receivers: Server[] = [];

beforeAll(async () => {
  vi.stubEnv("WRANGLER_LOG", "error");
  const { publicKey, privateKey } = await generateSealingKey();
  const configPath = fileURLToPath(new URL("../../wrangler.toml", import.meta.url));
  service = createTestHarness({ workers: [{ configPath, secrets: { SEALING_KEY_1: privateKey } }] });
  ({ url: origin } = await service.listen());
  const worker = service.getWorker<{ DB: D1Database; DB_2: D1Database }>();
  for (const home of ["DB", "DB_2"] as const) await worker.applyD1Migrations(home);
  database = new Database((await worker.getEnv()).DB);
  await database.run((orm) => orm.insert(sealingKey).values({ version: 1, publicKey, createdAt: Date.now() }));
}, 120_000);

afterAll(async () => {
  for (const receiver of receivers) receiver.close().closeAllConnections();
  await service?.close();
});

/** An application whose webhooks come to a server of this test. */
async function applicationWith(receive: (server: Server) => void): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  receivers.push(server);
  receive(server);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const { applicationId } = await createApplication(new Homes([{ number: 1, place: null, database }]), {
    name: "Isolation",
    webhookUrl: `http://127.0.0.1:${address.port}/`,
  });
  return applicationId;
}

async function issueBadges(applicationid: string, number: number): Promise<void> {
  const issue = async (device: number): Promise<void> => {
    const headers = { applicationid, udid: `device-${device}` };
    const body = JSON.stringify({ userId: `user-${device}` });
    const answer = await fetch(new URL("/v1/badge", origin), { method: "POST", headers, body });
    expect([answer.status, await answer.text()]).toEqual([201, expect.any(String)]);
  };
  await Promise.all(Array.from({ length: number }, (_, device) => issue(device)));
}

describe("a receiver that hangs delays no other application's events (contract section 8)", () => {
  it("on the platform's queue: the healthy one has all of its events before the hanging one responds to any", async () => {
    const answered = Promise.withResolvers<void>();
    const hanging = await applicationWith((server) =>
      server.on("request", async (_request, response) => {
        happened.push("hanging arrived");
        response.on("close", () => happened.push("hanging ended"));
        await answered.promise;
        response.writeHead(204).end();
      }),
    );
    const healthy = await applicationWith((server) =>
      server.on("request", (_request, response) => {
        happened.push("healthy arrived");
        response.writeHead(204).end();
      }),
    );
    await issueBadges(hanging, HANGING_EVENTS);
    await issueBadges(healthy, HEALTHY_EVENTS);
    const arrivals = () => [count("hanging arrived"), count("healthy arrived")];
    // All of the hanging ones at once, though a sender has five.
    const all = () => expect(arrivals()).toEqual([HANGING_EVENTS, HEALTHY_EVENTS]);
    await vi.waitFor(all, { timeout: 30_000, interval: 20 });
    expect(happened).not.toContain("hanging ended");
    answered.resolve();
    await until(() => expect(count("hanging ended")).toBe(HANGING_EVENTS));
  });
});
