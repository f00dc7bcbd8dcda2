import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { eq } from "drizzle-orm";
import { z } from "zod";
import { createApplication } from "../admin/operations/application-create.ts";
import type { Database } from "../admin/platform/database.ts";
import type { LocalState } from "../admin/platform/paths.ts";
import { newApplicationId, newApplicationSecret } from "../identifiers.ts";
import { application } from "../storage/schema.ts";

const demoSchema = z.object({ applicationId: z.string(), applicationSecret: z.string() });

export type DemoApplication = z.infer<typeof demoSchema>;

/**
 * The demo application, made if it is not there. Its secret cannot be read back from D1, so a file keeps it; the file is
 * written first, and a start that died before the application was made is finished by the next.
 */
export async function ensureDemoApplication(database: Database, state: LocalState): Promise<DemoApplication> {
  const credentials = readDemo(state) ?? writeDemo(state);
  const { applicationId } = credentials;
  const known = await database.run((orm) =>
    orm.select({ id: application.id }).from(application).where(eq(application.id, applicationId)),
  );
  if (known.length === 0) {
    await createApplication(database, {
      name: "Demo",
      webhookUrl: null,
      requireSecret: false,
      reuseAfterSeconds: 0,
      signatureLifetimeSeconds: null,
      credentials,
    });
  }
  return credentials;
}

function readDemo({ demoApplication }: LocalState): DemoApplication | null {
  if (!existsSync(demoApplication)) return null;
  return demoSchema.safeParse(JSON.parse(readFileSync(demoApplication, "utf8"))).data ?? null;
}

function writeDemo({ demoApplication }: LocalState): DemoApplication {
  const demo = { applicationId: newApplicationId(), applicationSecret: newApplicationSecret() };
  mkdirSync(dirname(demoApplication), { recursive: true });
  writeFileSync(demoApplication, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600, flush: true });
  return demo;
}
