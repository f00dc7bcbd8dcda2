import { fileURLToPath } from "node:url";
import type { D1Database } from "@cloudflare/workers-types";
import { createTestHarness } from "wrangler";
import { createApplication } from "../../../src/admin/operations/application-create.ts";
import { Database } from "../../../src/admin/platform/database.ts";
import { sealingKey } from "../../../src/shared/schema.ts";
import { generateSealingKey } from "../../../src/shared/sealing.ts";

/** The Worker behind a real HTTP server, on storage of its own, with one application. Starts in a few seconds. */
export interface Harness {
  origin: string;
  applicationId: string;
  close(): Promise<void>;
}

export async function startHarness(): Promise<Harness> {
  const { publicKey, privateKey } = await generateSealingKey();
  const configPath = fileURLToPath(new URL("../../../wrangler.toml", import.meta.url));
  const server = createTestHarness({ workers: [{ configPath, secrets: { SEALING_KEY_1: privateKey } }] });
  const { url } = await server.listen();
  const worker = server.getWorker<{ DB: D1Database }>();
  await worker.applyD1Migrations("DB");
  const database = new Database((await worker.getEnv()).DB);
  await database.run((orm) => orm.insert(sealingKey).values({ version: 1, publicKey, createdAt: Date.now() }));
  const { applicationId } = await createApplication(database, {
    name: "Test",
    webhookUrl: null,
    requireSecret: false,
    reuseAfterSeconds: 0,
    signatureLifetimeSeconds: null,
  });
  return { origin: url.origin, applicationId, close: () => server.close() };
}
