import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { eq } from "drizzle-orm";
import * as z from "zod";
import { createApplication } from "../admin/application/create.ts";
import { UserError } from "../admin/command-line/errors.ts";
import { openHomes } from "../admin/command-line/session.ts";
import type { Database } from "../admin/platform/database.ts";
import { formatPath, type LocalState } from "../admin/platform/paths.ts";
import { plainHomeSubmitter } from "../admin/script-command/submit.ts";
import { ensureLocalSealing } from "../admin/sealing-key/local.ts";
import { type ApplicationId, applicationId, newApplicationId, newApplicationSecret } from "../shared/identifiers.ts";
import { application, applicationSecret } from "../shared/schema.ts";

const credentialsSchema = z.object({ applicationId, applicationSecret: z.string() });

type Credentials = z.infer<typeof credentialsSchema>;

export interface DemoApplication {
  applicationId: ApplicationId;
  /** Null when it was changed: the new one cannot be read back. */
  applicationSecret: string | null;
  isDisabled: boolean;
}

/**
 * Creates missing tables and sealing keys in every home.
 *
 * @returns the demo application's ID, and the application if there is one
 */
export async function prepareLocalData(
  state: LocalState,
): Promise<{ demoApplicationId: ApplicationId; demo: DemoApplication | null }> {
  const { homes, close } = await openHomes(undefined);
  try {
    await ensureLocalSealing(homes, state);
    // The file comes before the application: after a crash in between, the next start creates the application from it.
    const credentials = readCredentials(state) ?? writeCredentials(state);
    const { applicationId: demoApplicationId } = credentials;
    return { demoApplicationId, demo: await findDemo(homes.databaseFor(demoApplicationId), credentials) };
  } finally {
    await close();
  }
}

/**
 * The demo application of home 1, created if there is none. The service must then be running, because it registers the
 * numbers. A file keeps the secret, which cannot be read back from D1.
 */
export async function ensureDemoApplication(state: LocalState): Promise<DemoApplication> {
  const keepOwn = rememberListeners();
  const opened = await openHomes(undefined);
  // The library for local databases would end this process at Ctrl-C, before the service is stopped.
  keepOwn();
  const { homes, close } = opened;
  try {
    const credentials = readCredentials(state) ?? writeCredentials(state);
    const found = await findDemo(homes.databaseFor(credentials.applicationId), credentials);
    if (found !== null) return found;
    await createApplication(homes, plainHomeSubmitter(opened), { name: "Demo", credentials });
    return { ...credentials, isDisabled: false };
  } finally {
    await close();
  }
}

/** @returns a function that removes signal listeners that were added since */
function rememberListeners(): () => void {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const before = signals.map((signal) => ({ signal, listeners: process.listeners(signal) }));
  return () => {
    for (const { signal, listeners } of before) {
      for (const listener of process.listeners(signal)) {
        if (!listeners.includes(listener)) process.off(signal, listener);
      }
    }
  };
}

async function findDemo(database: Database, kept: Credentials): Promise<DemoApplication | null> {
  const secrets = await database.run((orm) =>
    orm
      .select({ digest: applicationSecret.digest, disabledAt: application.disabledAt })
      .from(applicationSecret)
      .innerJoin(application, eq(application.id, applicationSecret.applicationId))
      .where(eq(application.id, kept.applicationId)),
  );
  const [first] = secrets;
  if (first === undefined) return null;
  const keptDigest = createHash("sha256").update(kept.applicationSecret).digest("base64url");
  const isLive = secrets.some(({ digest }) => digest === keptDigest);
  return {
    applicationId: kept.applicationId,
    applicationSecret: isLive ? kept.applicationSecret : null,
    isDisabled: first.disabledAt !== null,
  };
}

/** Null when there is no file. @throws UserError when the file does not have them */
function readCredentials({ demoApplication }: LocalState): Credentials | null {
  if (!existsSync(demoApplication)) return null;
  try {
    return credentialsSchema.parse(JSON.parse(readFileSync(demoApplication, "utf8")));
  } catch {
    throw new UserError(
      `${formatPath(demoApplication)} does not have the demo application's ID and secret: delete it to get a new demo application.`,
    );
  }
}

function writeCredentials({ demoApplication }: LocalState): Credentials {
  const demo = { applicationId: newApplicationId(), applicationSecret: newApplicationSecret() };
  mkdirSync(dirname(demoApplication), { recursive: true });
  writeFileSync(demoApplication, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600, flush: true });
  return demo;
}
