import { eq, type SQL, sql } from "drizzle-orm";
import { makeDeviceKey, makeSecret, makeSigningKey, type Sealer } from "../../shared/credentials.ts";
import { type ApplicationId, newApplicationId } from "../../shared/identifiers.ts";
import { INITIAL_HEAD } from "../../shared/initial-head.ts";
import { application, applicationHead, applicationSecret, signingKey } from "../../shared/schema.ts";
import type { WantedNumbers } from "../number-range/card-range.ts";
import { OF_APPLICATIONS, overlapsAnother } from "../number-range/range.ts";
import { type Database, insertWhere, type Orm } from "../platform/database.ts";
import type { Settings } from "./settings.ts";

/** The rows of a new application, which are inserted in one transaction: all of them or none. */

export interface NewApplication extends WantedNumbers, Settings {
  name: string;
  /** The home in which it lives; home 1 unless it is given. */
  home?: number | undefined;
  /** ID and secret to use instead of new ones. Only the demo application has them: its file is written first. */
  credentials?: { applicationId: ApplicationId; applicationSecret: string };
}

/** Identifiers, secrets and keys of a new application, made before anything is stored. */
export type Material = Awaited<ReturnType<typeof makeMaterial>>;

export async function makeMaterial(sealer: Sealer, { credentials, home }: NewApplication) {
  const applicationId = credentials?.applicationId ?? newApplicationId(home);
  return {
    applicationId,
    sealingVersion: sealer.version,
    secret: await makeSecret(sealer, applicationId, credentials?.applicationSecret),
    signingKey: await makeSigningKey(sealer, applicationId),
    deviceKey: await makeDeviceKey(sealer, applicationId),
    createdAt: Date.now(),
  };
}

/**
 * The application's row is inserted only if its numbers are free, and each other row only if the application's is there and it is
 * the first of its table.
 *
 * @param numbers a query that returns its numbers (`first_number`, `last_number`)
 */
export function insertRows(orm: Orm, wanted: NewApplication, material: Material, numbers: SQL) {
  const { applicationId, deviceKey: sealedDeviceKey, sealingVersion, createdAt } = material;
  const { home: _home, credentials: _credentials, range: _range, highestDefault: _highest, ...settings } = wanted;
  const [firstNumber, lastNumber] = [sql`range.first_number`, sql`range.last_number`];
  const isFree = sql`FROM (${numbers}) AS range WHERE NOT EXISTS (SELECT 1 FROM application WHERE id = ${applicationId})
    AND NOT ${overlapsAnother(OF_APPLICATIONS, firstNumber, lastNumber, applicationId)}
    AND EXISTS (SELECT 1 FROM sealing_key WHERE version = ${sealingVersion})`;
  const isFirstIn = (table: typeof applicationSecret | typeof signingKey | typeof applicationHead): SQL =>
    sql`WHERE EXISTS (SELECT 1 FROM application WHERE id = ${applicationId})
      AND NOT EXISTS (SELECT 1 FROM ${table} WHERE application_id = ${applicationId})`;
  const sealed = { sealedDeviceKey, sealingVersion };
  const owner = { ...settings, id: applicationId, firstNumber, lastNumber, ...sealed, createdAt };
  const secret = { ...material.secret.row, applicationId, role: "current", createdAt } as const;
  const key = { ...material.signingKey, applicationId, createdAt, signsFrom: sql`unixepoch() * 1000` };
  return [
    insertWhere(orm, application, owner, isFree),
    insertWhere(orm, applicationSecret, secret, isFirstIn(applicationSecret)),
    insertWhere(orm, signingKey, key, isFirstIn(signingKey)),
    insertWhere(orm, applicationHead, { applicationId, ...INITIAL_HEAD }, isFirstIn(applicationHead)),
  ] as const;
}

/** Removes an application whose ID nobody has learned yet. */
export const removeApplication = (database: Database, id: ApplicationId) =>
  database.run((orm) =>
    orm.batch([
      orm.delete(applicationSecret).where(eq(applicationSecret.applicationId, id)),
      orm.delete(signingKey).where(eq(signingKey.applicationId, id)),
      orm.delete(applicationHead).where(eq(applicationHead.applicationId, id)),
      orm.delete(application).where(eq(application.id, id)),
    ]),
  );
