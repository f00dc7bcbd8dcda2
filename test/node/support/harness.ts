import { fileURLToPath } from "node:url";
import type { D1Database } from "@cloudflare/workers-types";
import { createTestHarness } from "wrangler";
import { createApplication } from "../../../src/admin/application/create.ts";
import { Database } from "../../../src/admin/platform/database.ts";
import { Homes } from "../../../src/admin/platform/homes.ts";
import type { ApplicationId } from "../../../src/shared/identifiers.ts";
import { newApplicationId, newApplicationSecret } from "../../../src/shared/identifiers.ts";
import { sealingKey } from "../../../src/shared/schema.ts";
import { generateSealingKey } from "../../../src/shared/sealing.ts";

/** The Worker behind a real HTTP server, on storage of its own, with one application. Starts in a few seconds. */
export interface Harness {
  origin: string;
  /** Of the application, which is the demo application, too. */
  applicationId: ApplicationId;
  applicationSecret: string;
  /** What the Worker writes to. */
  database: Database;
  close(): Promise<void>;
}

export async function startHarness({ webhookUrl = null }: { webhookUrl?: string | null } = {}): Promise<Harness> {
  const { publicKey, privateKey } = await generateSealingKey();
  const credentials = { applicationId: newApplicationId(), applicationSecret: newApplicationSecret() };
  const configPath = fileURLToPath(new URL("../../../wrangler.toml", import.meta.url));
  // As `npm start` runs it.
  const vars = { DEMO_APPLICATION_ID: credentials.applicationId };
  const server = createTestHarness({ workers: [{ configPath, vars, secrets: { SEALING_KEY_1: privateKey } }] });
  const { url } = await server.listen();
  const worker = server.getWorker<{ DB: D1Database; DB_2: D1Database }>();
  for (const home of ["DB", "DB_2"] as const) await worker.applyD1Migrations(home);
  const database = new Database((await worker.getEnv()).DB);
  await database.run((orm) => orm.insert(sealingKey).values({ version: 1, publicKey, createdAt: Date.now() }));
  await createApplication(new Homes([{ number: 1, place: null, database }]), {
    name: "Test",
    webhookUrl,
    credentials,
  });
  return { origin: url.origin, ...credentials, database, close: () => server.close() };
}
