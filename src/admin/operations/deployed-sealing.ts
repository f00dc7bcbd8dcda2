import { randomUUID } from "node:crypto";
import { and, eq, sql } from "drizzle-orm";
import { generateSealingKey } from "../../applications/sealing.ts";
import { sealingKey } from "../../storage/schema.ts";
import { ADMIN, Mistake } from "../mistake.ts";
import type { Database } from "../platform/database.ts";
import { newestVersion } from "./sealing-keys.ts";

/** A claim this old is of a run that died: setting a secret takes seconds. */
const CLAIM_MINUTES = 15;

/**
 * Makes the next sealing key of a deployed environment: first the private half becomes a Worker secret, then the public
 * half goes into D1. The private half is never on disk nor on a command line.
 *
 * Two administrators must not set one secret: the one whose public half lost would have replaced the other's private
 * half. So the version is claimed in D1 beforehand, by a row whose version is negative; no reader takes it for a key.
 *
 * @param putSecret makes a private half a Worker secret
 * @returns its version
 */
export async function makeDeployedSealingKey(
  database: Database,
  putSecret: (version: number, privateKey: string) => Promise<unknown>,
): Promise<number> {
  const version = (await newestVersion(database)) + 1;
  const claim = randomUUID();
  await claimVersion(database, version, claim);
  const { publicKey, privateKey } = await generateSealingKey();
  await putSecret(version, privateKey);
  await publish(database, version, claim, publicKey);
  return version;
}

/** Claims a version that nobody has made yet. */
async function claimVersion(database: Database, version: number, claim: string): Promise<void> {
  const now = Date.now();
  const isUnmade = sql`NOT EXISTS (SELECT 1 FROM ${sealingKey} WHERE version >= ${version})`;
  const isOurs = sql`${sealingKey.publicKey} = ${claim}`;
  const isStale = sql`${sealingKey.createdAt} < ${now - CLAIM_MINUTES * 60_000}`;
  const [, rows] = await database.run((orm) =>
    orm.batch([
      orm
        .insert(sealingKey)
        .select(sql`SELECT ${-version}, ${claim}, ${now} WHERE ${isUnmade}`)
        .onConflictDoUpdate({
          target: sealingKey.version,
          set: { publicKey: claim, createdAt: now },
          setWhere: sql`${isOurs} OR ${isStale}`,
        }),
      orm.select().from(sealingKey).where(eq(sealingKey.version, -version)),
    ]),
  );
  if (rows[0]?.publicKey === claim) return;
  throw new Mistake(
    `Another administrator makes or has just made sealing key ${version}: see ${ADMIN} sealing-key list, and try again in ${CLAIM_MINUTES} minutes if it does not appear.`,
  );
}

async function publish(database: Database, version: number, claim: string, publicKey: string): Promise<void> {
  const isClaimed = sql`EXISTS (SELECT 1 FROM ${sealingKey} WHERE version = ${-version} AND public_key = ${claim})`;
  const [, , rows] = await database.run((orm) =>
    orm.batch([
      orm
        .insert(sealingKey)
        .select(sql`SELECT ${version}, ${publicKey}, ${Date.now()} WHERE ${isClaimed}`)
        .onConflictDoNothing(),
      orm.delete(sealingKey).where(and(eq(sealingKey.version, -version), eq(sealingKey.publicKey, claim))),
      orm.select().from(sealingKey).where(eq(sealingKey.version, version)),
    ]),
  );
  if (rows[0]?.publicKey === publicKey) return;
  throw new Mistake(`Sealing key ${version} was not recorded, because the claim on it ran out: run the command again.`);
}
