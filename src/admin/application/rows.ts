import { type SQL, sql } from "drizzle-orm";
import { makeRootKey, makeSecret, makeSigningKey, type Sealer } from "../../shared/credentials.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { INITIAL_HEAD } from "../../shared/initial-head.ts";
import { UNUSED_REGISTRATION_HOURS } from "../../shared/limits/platform-limits.ts";
import { application, applicationHead, applicationSecret, sealingKey, signingKey } from "../../shared/schema.ts";
import type { Registration } from "../../shared/script-commands.ts";
import { HOUR_MILLISECONDS } from "../../shared/time.ts";
import { overlapsAnother } from "../number-range/range.ts";
import type { WantedNumbers } from "../number-range/range-options.ts";
import { insertWhere, type Orm } from "../platform/database.ts";
import type { Settings } from "./settings.ts";

/** The rows of a new application, inserted in one transaction. */

export interface NewApplication extends WantedNumbers, Settings {
  name: string;
  /** Default: home 1. */
  home?: number | undefined;
  /** ID and secret to use instead of new ones. Only for the demo application, whose file is written first. */
  credentials?: { applicationId: ApplicationId; applicationSecret: string };
}

/** Identifiers, secrets and keys of a new application, generated before anything is stored. */
export type Material = Awaited<ReturnType<typeof makeMaterial>>;

export async function makeMaterial(sealer: Sealer, applicationId: ApplicationId, { credentials }: NewApplication) {
  return {
    applicationId,
    sealingVersion: sealer.version,
    secret: await makeSecret(sealer, applicationId, credentials?.applicationSecret),
    signingKey: await makeSigningKey(sealer, applicationId),
    rootKey: await makeRootKey(sealer, applicationId),
    createdAt: Date.now(),
  };
}

/**
 * A registration can be released after a day. Using its numbers is refused an hour earlier, in case this computer slept
 * since it registered them.
 */
const USABLE_HOURS = UNUSED_REGISTRATION_HOURS - 1;

/**
 * The application's row is inserted only if its registration is recent and no other application of its home has the
 * numbers. Each other row is inserted only with it, as the first of its table.
 */
export function insertRows(orm: Orm, wanted: NewApplication, material: Material, registration: Registration) {
  const { applicationId, rootKey: sealedRootKey, sealingVersion, createdAt } = material;
  const { home: _home, credentials: _credentials, range: _range, ...settings } = wanted;
  const { firstNumber, lastNumber, registeredAt } = registration;
  const usableUntil = registeredAt + USABLE_HOURS * HOUR_MILLISECONDS;
  const isFree = sql`WHERE NOT EXISTS (SELECT 1 FROM ${application} WHERE ${application.id} = ${applicationId})
    AND NOT ${overlapsAnother(sql`${firstNumber}`, sql`${lastNumber}`, applicationId)}
    AND unixepoch() * 1000 < ${usableUntil}
    AND EXISTS (SELECT 1 FROM ${sealingKey} WHERE ${sealingKey.version} = ${sealingVersion})`;
  const isFirstIn = (table: typeof applicationSecret | typeof signingKey | typeof applicationHead): SQL =>
    sql`WHERE EXISTS (SELECT 1 FROM ${application} WHERE ${application.id} = ${applicationId})
      AND NOT EXISTS (SELECT 1 FROM ${table} WHERE ${table.applicationId} = ${applicationId})`;
  const sealed = { sealedRootKey, sealingVersion };
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
