import { eq, type SQL, sql } from "drizzle-orm";
import { makeDeviceKey, makeSecret, makeSigningKey, type Sealer } from "../../shared/credentials.ts";
import { FIRST_POSITION } from "../../shared/first-position.ts";
import { type ApplicationId, newApplicationId } from "../../shared/identifiers.ts";
import { application, applicationSecret, position, signingKey } from "../../shared/schema.ts";
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

/** @param numbers a query that returns its numbers (`first_number`, `last_number`) */
export function insertApplication(orm: Orm, wanted: NewApplication, material: Material, numbers: SQL) {
  const { applicationId: id, deviceKey: sealedDeviceKey, sealingVersion, createdAt } = material;
  const { home: _home, credentials: _credentials, range: _range, highestDefault: _highest, ...settings } = wanted;
  const [first, last] = [sql`range.first_number`, sql`range.last_number`];
  return insertWhere(
    orm,
    application,
    { ...settings, id, firstNumber: first, lastNumber: last, sealedDeviceKey, sealingVersion, createdAt },
    sql`FROM (${numbers}) AS range WHERE NOT EXISTS (SELECT 1 FROM application WHERE id = ${id})
      AND NOT ${overlapsAnother(OF_APPLICATIONS, first, last, id)}
      AND EXISTS (SELECT 1 FROM sealing_key WHERE version = ${sealingVersion})`,
  );
}

/** The application's row was inserted, and it has no row of this table yet. */
const isFirstIn = (table: typeof applicationSecret | typeof signingKey | typeof position, id: ApplicationId): SQL =>
  sql`WHERE EXISTS (SELECT 1 FROM application WHERE id = ${id})
    AND NOT EXISTS (SELECT 1 FROM ${table} WHERE application_id = ${id})`;

export const insertSecret = (orm: Orm, { applicationId, secret: { row }, createdAt }: Material) =>
  insertWhere(
    orm,
    applicationSecret,
    { ...row, applicationId, role: "current", createdAt },
    isFirstIn(applicationSecret, applicationId),
  );

export const insertSigningKey = (orm: Orm, { applicationId, signingKey: key, createdAt }: Material) =>
  insertWhere(
    orm,
    signingKey,
    { ...key, applicationId, createdAt, signsFrom: sql`unixepoch() * 1000` },
    isFirstIn(signingKey, applicationId),
  );

export const insertPosition = (orm: Orm, { applicationId }: Material) =>
  insertWhere(orm, position, { applicationId, ...FIRST_POSITION }, isFirstIn(position, applicationId));

/** Removes an application whose ID nobody has learned yet. */
export const removeApplication = (database: Database, id: ApplicationId) =>
  database.run((orm) =>
    orm.batch([
      orm.delete(applicationSecret).where(eq(applicationSecret.applicationId, id)),
      orm.delete(signingKey).where(eq(signingKey.applicationId, id)),
      orm.delete(position).where(eq(position.applicationId, id)),
      orm.delete(application).where(eq(application.id, id)),
    ]),
  );
