import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { D1Database } from "@cloudflare/workers-types";
import type { TestProject } from "vitest/node";
import { createApplication } from "../../../src/admin/application/create.ts";
import { healthProblem } from "../../../src/admin/deploy/address.ts";
import { Database } from "../../../src/admin/platform/database.ts";
import { Homes } from "../../../src/admin/platform/homes.ts";
import { plainHomeSubmitter } from "../../../src/admin/script-command/submit.ts";
import { listenSomewhere } from "../../../src/dev/demo/listen.ts";
import { newApplicationId, newApplicationSecret } from "../../../src/shared/identifiers.ts";
import { sealingKey } from "../../../src/shared/schema.ts";
import { generateSealingKey } from "../../../src/shared/sealing.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where `startHarness` asks for the service. */
    sharedService: string;
  }
}

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/**
 * wrangler's development proxy can lose a POST that it sends on a connection that has been idle for 5 s (workers-sdk issue
 * 14641). It prefers the connection used last, so one call a second keeps calls safe that are made one after another.
 */
const KEEP_ALIVE_MILLISECONDS = 1000;

/**
 * Once per run: a service for all files of tests, since to start one takes five seconds. The first that asks starts it. Its
 * databases can be reached as through D1's REST interface.
 */
export default async function shareService({ provide }: TestProject): Promise<() => Promise<void>> {
  let starting: ReturnType<typeof startService> | undefined;
  const control = createServer(async (request, response) => {
    try {
      starting ??= startService();
      const { described, rest, worker } = await starting;
      const body = await text(request);
      if (request.url === "/d1") {
        const answered = await rest.fetch("http://d1-rest/", { method: "POST", body });
        response.writeHead(answered.status).end(await answered.text());
        return;
      }
      if (request.url === "/clock") await worker.scheduled({ cron: "* * * * *" });
      response.end(JSON.stringify(described));
    } catch (error) {
      response.writeHead(500).end(error instanceof Error ? error.message : String(error));
    }
  });
  provide("sharedService", await listenSomewhere(control));
  return async () => {
    control.close().closeAllConnections();
    await (await starting)?.close();
  };
}

async function startService() {
  process.env.WRANGLER_LOG ??= "error";
  // Half a second, which a run without this service need not take.
  const { createTestHarness, unstable_readConfig } = await import("wrangler");
  const { publicKey, privateKey } = await generateSealingKey();
  const demo = { applicationId: newApplicationId(), applicationSecret: newApplicationSecret() };
  const configPath = path("../../../wrangler.toml");
  const { compatibility_date, d1_databases } = unstable_readConfig({ config: configPath });
  const config = { ...{ name: "d1-rest", main: path("d1-rest.js") }, compatibility_date, d1_databases };
  // As `npm start` runs it.
  const vars = { DEMO_APPLICATION_ID: demo.applicationId };
  const server = createTestHarness({
    workers: [{ configPath, vars, secrets: { SEALING_KEY_1: privateKey } }, { config }],
  });
  const { url } = await server.listen();
  const worker = server.getWorker<{ DB: D1Database; DB_2: D1Database }>();
  for (const home of ["DB", "DB_2"] as const) await worker.applyD1Migrations(home);
  const { DB, DB_2 } = await worker.getEnv();
  const homes = new Homes([
    { number: 1, place: null, database: new Database(DB) },
    { number: 2, place: null, database: new Database(DB_2) },
  ]);
  const key = { version: 1, publicKey, createdAt: Date.now() };
  await homes.map(({ database }) => database.run((orm) => orm.insert(sealingKey).values(key)));
  const wake = async () => void (await worker.scheduled({ cron: "* * * * *" }));
  await createApplication(homes, plainHomeSubmitter({ homes, wake }), { name: "Demo", credentials: demo });
  const keepAlive = setInterval(() => healthProblem(url.origin), KEEP_ALIVE_MILLISECONDS);
  const close = (): Promise<void> => {
    clearInterval(keepAlive);
    return server.close();
  };
  return { described: { origin: url.origin, demo }, rest: server.getWorker("d1-rest"), worker, close };
}
