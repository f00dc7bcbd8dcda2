import { and, eq, notExists, type SQL, sql } from "drizzle-orm";
import { makeDeviceKey, makeSecret, makeSigningKey, type Sealer } from "../../shared/credentials.ts";
import type { SubscribableEvent } from "../../shared/events.ts";
import { FIRST_POSITION } from "../../shared/first-position.ts";
import { type ApplicationId, newApplicationId } from "../../shared/identifiers.ts";
import { DEFAULT_STATUS_LIFETIME_SECONDS } from "../../shared/limits.ts";
import { application, applicationSecret, position, signingKey } from "../../shared/schema.ts";
import type { WantedNumbers } from "../number-range/card-range.ts";
import { OF_APPLICATIONS, overlapsAnother } from "../number-range/range.ts";
import type { Database, Orm } from "../platform/database.ts";
import { NO_USERS, type UserColumns } from "./user-options.ts";

/** The rows of a new application, which are inserted in one transaction: all of them or none. */

export interface NewApplication extends WantedNumbers {
  name: string;
  /** The home in which it lives; home 1 unless it is given. */
  home?: number | undefined;
  webhookUrl: string | null;
  /** Undefined: badge:created alone (contract section 18). */
  events?: readonly SubscribableEvent[] | undefined;
  requireSecret: boolean;
  reuseAfterSeconds: number;
  signatureLifetimeSeconds: number | null;
  /** Off unless it is true; the lifetime is a day unless it is given. */
  statusList?: boolean | undefined;
  statusLifetimeSeconds?: number | undefined;
  /** See `ApplicationChanges`. */
  requireProof?: boolean | undefined;
  bindUntil?: number | null | undefined;
  newBadgesPerHour?: number | null | undefined;
  /** Undefined: nobody verifies its users. */
  users?: UserColumns | undefined;
  /** ID and secret to use instead of new ones. Only the demo application has them: its file is written first. */
  credentials?: { applicationId: ApplicationId; applicationSecret: string };
}

const DEFAULT_EVENTS: readonly SubscribableEvent[] = ["badge:created"];

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
  const { applicationId, deviceKey, sealingVersion, createdAt } = material;
  const { users = NO_USERS } = wanted;
  const [first, last] = [sql`range.first_number`, sql`range.last_number`];
  return orm.insert(application).select(
    orm
      .select({
        id: sql`${applicationId}`.as("id"),
        name: sql`${wanted.name}`.as("name"),
        firstNumber: first.as("first_number"),
        lastNumber: last.as("last_number"),
        requireSecret: sql`${wanted.requireSecret ? 1 : 0}`.as("require_secret"),
        reuseAfterSeconds: sql`${wanted.reuseAfterSeconds}`.as("reuse_after_seconds"),
        signatureLifetimeSeconds: sql`${wanted.signatureLifetimeSeconds}`.as("signature_lifetime_seconds"),
        sealedDeviceKey: sql`${deviceKey}`.as("sealed_device_key"),
        sealingVersion: sql`${sealingVersion}`.as("sealing_version"),
        webhookUrl: sql`${wanted.webhookUrl}`.as("webhook_url"),
        invitationLink: sql`NULL`.as("invitation_link"),
        webhookHeldAt: sql`NULL`.as("webhook_held_at"),
        webhookFailingSince: sql`NULL`.as("webhook_failing_since"),
        webhookFailures: sql`0`.as("webhook_failures"),
        events: sql`${(wanted.events ?? DEFAULT_EVENTS).join()}`.as("events"),
        statusList: sql`${wanted.statusList ? 1 : 0}`.as("status_list"),
        statusLifetimeSeconds: sql`${wanted.statusLifetimeSeconds ?? DEFAULT_STATUS_LIFETIME_SECONDS}`.as(
          "status_lifetime_seconds",
        ),
        requireProof: sql`${wanted.requireProof ? 1 : 0}`.as("require_proof"),
        bindUntil: sql`${wanted.bindUntil ?? null}`.as("bind_until"),
        newBadgesPerHour: sql`${wanted.newBadgesPerHour ?? null}`.as("new_badges_per_hour"),
        userIssuer: sql`${users.userIssuer}`.as("user_issuer"),
        userAudience: sql`${users.userAudience}`.as("user_audience"),
        userClaim: sql`${users.userClaim}`.as("user_claim"),
        userObserve: sql`${users.userObserve ? 1 : 0}`.as("user_observe"),
        createdAt: sql`${createdAt}`.as("created_at"),
        disabledAt: sql`NULL`.as("disabled_at"),
      })
      .from(sql`(${numbers}) AS range`)
      .where(sql`NOT EXISTS (SELECT 1 FROM application WHERE id = ${applicationId})
        AND NOT ${overlapsAnother(OF_APPLICATIONS, first, last, applicationId)} 
        AND EXISTS (SELECT 1 FROM sealing_key WHERE version = ${sealingVersion})`),
  );
}

export function insertSecret(orm: Orm, { applicationId, secret: { row }, createdAt }: Material) {
  const existing = orm.select().from(applicationSecret).where(eq(applicationSecret.applicationId, applicationId));
  return orm.insert(applicationSecret).select(
    orm
      .select({
        id: sql`${row.id}`.as("id"),
        applicationId: application.id,
        role: sql`'current'`.as("role"),
        digest: sql`${row.digest}`.as("digest"),
        sealed: sql`${row.sealed}`.as("sealed"),
        sealingVersion: sql`${row.sealingVersion}`.as("sealing_version"),
        createdAt: sql`${createdAt}`.as("created_at"),
      })
      .from(application)
      .where(and(eq(application.id, applicationId), notExists(existing))),
  );
}

export function insertSigningKey(orm: Orm, { applicationId, signingKey: key, createdAt }: Material) {
  const existing = orm.select().from(signingKey).where(eq(signingKey.applicationId, applicationId));
  return orm.insert(signingKey).select(
    orm
      .select({
        id: sql`${key.id}`.as("id"),
        applicationId: application.id,
        kid: sql`${key.kid}`.as("kid"),
        publicKey: sql`${key.publicKey}`.as("public_key"),
        sealed: sql`${key.sealed}`.as("sealed"),
        sealingVersion: sql`${key.sealingVersion}`.as("sealing_version"),
        createdAt: sql`${createdAt}`.as("created_at"),
        signsFrom: sql`unixepoch() * 1000`.as("signs_from"),
      })
      .from(application)
      .where(and(eq(application.id, applicationId), notExists(existing))),
  );
}

export function insertPosition(orm: Orm, { applicationId }: Material) {
  const existing = orm.select().from(position).where(eq(position.applicationId, applicationId));
  return orm.insert(position).select(
    orm
      .select({
        applicationId: application.id,
        sequence: sql`${FIRST_POSITION.sequence}`.as("sequence"),
        entry: sql`${FIRST_POSITION.entry}`.as("entry"),
        fresh: sql`${FIRST_POSITION.fresh}`.as("fresh"),
        lastPosition: sql`${FIRST_POSITION.lastPosition}`.as("last_position"),
        lastChange: sql`${FIRST_POSITION.lastChange}`.as("last_change"),
        lastSigningKey: sql`${FIRST_POSITION.lastSigningKey}`.as("last_signing_key"),
        epoch: sql`${FIRST_POSITION.epoch}`.as("epoch"),
        hourStartedAt: sql`${FIRST_POSITION.hourStartedAt}`.as("hour_started_at"),
        hourUsed: sql`${FIRST_POSITION.hourUsed}`.as("hour_used"),
        journalSince: sql`NULL`.as("journal_since"),
      })
      .from(application)
      .where(and(eq(application.id, applicationId), notExists(existing))),
  );
}

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
