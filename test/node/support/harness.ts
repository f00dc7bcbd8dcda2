import { fileURLToPath } from "node:url";
import type { D1Database } from "@cloudflare/workers-types";
import { isNull } from "drizzle-orm";
import { createTestHarness } from "wrangler";
import { createApplication } from "../../../src/admin/application/create.ts";
import { Database } from "../../../src/admin/platform/database.ts";
import { Homes } from "../../../src/admin/platform/homes.ts";
import { createAdminProgram, run } from "../../../src/admin/program.ts";
import type { ApplicationId } from "../../../src/shared/identifiers.ts";
import { newApplicationId, newApplicationSecret } from "../../../src/shared/identifiers.ts";
import { inbox, sealingKey } from "../../../src/shared/schema.ts";
import { generateSealingKey } from "../../../src/shared/sealing.ts";
import { aroundSteps } from "./homes.ts";
import { captured, type Printed } from "./script.ts";

/** The Worker behind a real HTTP server, on storage of its own, with one application. Starts in a few seconds. */
export interface Harness {
  origin: string;
  /** Of the application, which is the demo application, too. */
  applicationId: ApplicationId;
  applicationSecret: string;
  /** What the Worker writes to in home 1. */
  database: Database;
  /** Runs the administration script on the same homes, in this process. */
  admin(...words: string[]): Promise<Printed>;
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
  const env = await worker.getEnv();
  const [first, second] = [new Database(env.DB), new Database(env.DB_2)];
  const homes = new Homes([
    { number: 1, place: null, database: first },
    { number: 2, place: null, database: second },
  ]);
  for (const home of ["DB", "DB_2"] as const) await worker.applyD1Migrations(home);
  const key = { version: 1, publicKey, createdAt: Date.now() };
  await homes.everywhere(({ database }) => database.run((orm) => orm.insert(sealingKey).values(key)));
  await createApplication(homes, { name: "Test", webhookUrl, credentials });
  // A command that waits for the Worker is carried out at once, not when its clock looks for commands.
  const prompt = aroundSteps(homes, async (_, take) => {
    const result = await take();
    const isWrite = typeof result === "object" && result !== null && "meta" in result;
    if (!isWrite) return result;
    const waiting = await homes.everywhere(({ database }) =>
      database.run((orm) => orm.$count(inbox, isNull(inbox.result))),
    );
    if (waiting.some((count) => count > 0)) await worker.scheduled({ cron: "* * * * *" });
    return result;
  });
  const opened = {
    ...{ homes: prompt.homes, database: prompt.homes.first.database },
    ...{ place: { environment: "test" }, close: () => Promise.resolve() },
  };
  return {
    origin: url.origin,
    ...credentials,
    database: first,
    admin: (...words) =>
      captured(() =>
        run(
          createAdminProgram(async () => opened),
          words,
        ),
      ),
    close: () => server.close(),
  };
}
