import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { eq } from "drizzle-orm";
import * as z from "zod";
import { createApplication } from "../admin/operations/application-create.ts";
import type { Database } from "../admin/platform/database.ts";
import type { LocalState } from "../admin/platform/paths.ts";
import { newApplicationId, newApplicationSecret } from "../identifiers.ts";
import { application, applicationSecret } from "../storage/schema.ts";

const demoSchema = z.object({ applicationId: z.string(), applicationSecret: z.string() });

export type DemoApplication = z.infer<typeof demoSchema>;

/**
 * The demo application, made if there is none whose secret is known. The secret cannot be read back from D1, so a file
 * keeps it; the file is written first, and a start that died before the application was made is finished by the next.
 */
export async function ensureDemoApplication(database: Database, state: LocalState): Promise<DemoApplication> {
  const kept = readDemo(state);
  const rows = kept ? await readSecrets(database, kept.applicationId) : [];
  if (kept && rows.some(({ digest, disabledAt }) => disabledAt === null && digest === digestOf(kept))) return kept;
  // Its secret was retired, or it was disabled: another one shall work as it is printed.
  const credentials = kept && rows.length === 0 ? kept : writeDemo(state);
  await createApplication(database, {
    name: "Demo",
    webhookUrl: null,
    requireSecret: false,
    reuseAfterSeconds: 0,
    signatureLifetimeSeconds: null,
    credentials,
  });
  return credentials;
}

const readSecrets = (database: Database, applicationId: string) =>
  database.run((orm) =>
    orm
      .select({ digest: applicationSecret.digest, disabledAt: application.disabledAt })
      .from(applicationSecret)
      .innerJoin(application, eq(application.id, applicationSecret.applicationId))
      .where(eq(application.id, applicationId)),
  );

const digestOf = ({ applicationSecret: secret }: DemoApplication): string =>
  createHash("sha256").update(secret).digest("base64url");

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
