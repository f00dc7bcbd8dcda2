import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { D1Database } from "@cloudflare/workers-types";
import type { TestProject } from "vitest/node";
import * as z from "zod";
import { createApplication } from "../../../src/admin/application/create.ts";
import { healthProblem } from "../../../src/admin/deploy/address.ts";
import { Database } from "../../../src/admin/platform/database.ts";
import { Homes } from "../../../src/admin/platform/homes.ts";
import { plainHomeSubmitter } from "../../../src/admin/script-command/submit.ts";
import { newApplicationId, newApplicationSecret } from "../../../src/shared/identifiers.ts";
import { sealingKey } from "../../../src/shared/schema.ts";
import { generateSealingKey } from "../../../src/shared/sealing.ts";
import { listen } from "./listen.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where `startHarness` asks for the service. */
    sharedService: string;
  }
}

const statements = z.object({ batch: z.array(z.object({ sql: z.string(), params: z.array(z.unknown()) })) });

/** A statement whose rows have columns, of which two may have one name. */
const RETURNS_ROWS = /^\s*(select|with)\b|\breturning\b/i;

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
      const { described, databases, worker } = await starting;
      const [, area = "", home = ""] = request.url?.split("/") ?? [];
      const body = await buffer(request);
      const database = databases.get(home);
      if (area === "clock") await worker.scheduled({ cron: "* * * * *" });
      const result = database ? await query(database, JSON.parse(body.toString())) : described;
      response.end(JSON.stringify(result));
    } catch (error) {
      response.writeHead(500).end(error instanceof Error ? error.message : String(error));
    }
  });
  provide("sharedService", await listen(control));
  return async () => {
    control.close().closeAllConnections();
    await (await starting)?.close();
  };
}

async function startService() {
  process.env.WRANGLER_LOG ??= "error";
  // Half a second, which a run without this service need not take.
  const { createTestHarness } = await import("wrangler");
  const { publicKey, privateKey } = await generateSealingKey();
  const demo = { applicationId: newApplicationId(), applicationSecret: newApplicationSecret() };
  const configPath = fileURLToPath(new URL("../../../wrangler.toml", import.meta.url));
  // As `npm start` runs it.
  const vars = { DEMO_APPLICATION_ID: demo.applicationId };
  const server = createTestHarness({ workers: [{ configPath, vars, secrets: { SEALING_KEY_1: privateKey } }] });
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
  const databases = new Map(Object.entries({ "1": DB, "2": DB_2 }));
  const keepAlive = setInterval(() => healthProblem(url.origin), KEEP_ALIVE_MILLISECONDS);
  const close = (): Promise<void> => {
    clearInterval(keepAlive);
    return server.close();
  };
  return { described: { origin: url.origin, demo }, databases, worker, close };
}

/** What D1's REST interface responds to a batch. */
async function query(database: D1Database, body: unknown): Promise<object[]> {
  const { batch } = statements.parse(body);
  const prepared = batch.map(({ sql, params }) => database.prepare(sql).bind(...params));
  const [first] = prepared;
  if (first !== undefined && prepared.length === 1 && RETURNS_ROWS.test(batch[0]?.sql ?? "")) {
    const [columns, ...rows] = await first.raw({ columnNames: true });
    return [{ results: { columns, rows }, meta: {} }];
  }
  const results = await database.batch<Record<string, unknown>>(prepared);
  return results.map(({ results: rows, meta }) => ({
    results: { columns: Object.keys(rows[0] ?? {}), rows: rows.map((row) => Object.values(row)) },
    meta,
  }));
}
