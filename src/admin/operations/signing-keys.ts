import { and, between, count, desc, eq, isNotNull, sql } from "drizzle-orm";
import { makeSigningKey, type NewSigningKey } from "../../applications/issuing.ts";
import { application, badge, sealingKey, signingKey } from "../../storage/schema.ts";
import { Mistake } from "../mistake.ts";
import { isoTime } from "../output.ts";
import type { Database, Orm } from "../platform/database.ts";
import { findApplication } from "./applications.ts";
import { newestSealer } from "./sealer.ts";

/** A signing key as the commands print it. */
export interface ShownSigningKey {
  keyId: string;
  /** Whether new badges get this one. */
  current: boolean;
  /** Badges that are signed with it. */
  badges: number;
  createdAt: string | null;
}

/** Gives an application a new signing key for new badges. Badges keep the key that they were issued with. */
export async function rotateSigningKey(
  database: Database,
  applicationId: string,
): Promise<{ applicationId: string; keyId: string }> {
  await findApplication(database, applicationId);
  const key = await makeSigningKey(await newestSealer(database), applicationId);
  const [, inserted] = await database.run((orm) =>
    orm.batch([
      insertSigningKey(orm, applicationId, key),
      orm.select({ kid: signingKey.kid }).from(signingKey).where(isKey(applicationId, key.kid)),
    ]),
  );
  if (inserted.length === 0) throw new Mistake("The sealing key was replaced at this moment: run the command again.");
  return { applicationId, keyId: key.kid };
}

const isKey = (applicationId: string, kid: string) =>
  and(eq(signingKey.applicationId, applicationId), eq(signingKey.kid, kid));

/** Inserts a key unless it is there: sent again after a lost answer, it makes no second one. */
function insertSigningKey(orm: Orm, applicationId: string, key: NewSigningKey) {
  return orm.insert(signingKey).select(sql`
    SELECT NULL, id, ${key.kid}, ${key.publicKey}, ${key.sealed}, ${key.sealingVersion}, ${Date.now()}
    FROM ${application} WHERE id = ${applicationId}
      AND EXISTS (SELECT 1 FROM ${sealingKey} WHERE version = ${key.sealingVersion})
      AND NOT EXISTS (SELECT 1 FROM ${signingKey} WHERE application_id = ${applicationId} AND kid = ${key.kid})`);
}

/** The signing keys of an application, newest first. */
export async function listSigningKeys(database: Database, applicationId: string): Promise<ShownSigningKey[]> {
  const { firstNumber, lastNumber } = await findApplication(database, applicationId);
  const [keys, uses] = await database.run((orm) =>
    orm.batch([
      orm.select().from(signingKey).where(eq(signingKey.applicationId, applicationId)).orderBy(desc(signingKey.id)),
      orm
        .select({ id: badge.signingKeyId, badges: count() })
        .from(badge)
        .where(and(between(badge.number, firstNumber, lastNumber), isNotNull(badge.position)))
        .groupBy(badge.signingKeyId),
    ]),
  );
  const badges = new Map(uses.map((use) => [use.id, use.badges]));
  return keys.map(({ id, kid, createdAt }, place) => ({
    keyId: kid,
    current: place === 0,
    badges: badges.get(id) ?? 0,
    createdAt: isoTime(createdAt),
  }));
}
