import { and, desc, eq, lt } from "drizzle-orm";
import { RESEAL_CHUNK_ROWS } from "../limits.ts";
import type { Database } from "../storage/database.ts";
import { application, applicationSecret, sealingKey, signingKey } from "../storage/schema.ts";
import { open, type SealLabel, seal } from "./sealing.ts";
import type { SealingKeys } from "./sealing-keys.ts";

/**
 * Re-seals some values to the newest sealing key. The Worker does it, in its sweep, because only the Worker can open
 * what is sealed; an administrator only adds the newer key and watches the count (contract section 9). Every row is
 * changed on the condition that it is still what was opened, so it can be repeated and can stop anywhere.
 *
 * @returns how many values it re-sealed; zero when none is left, or when this Worker does not hold the newest key yet
 */
export async function resealSome(db: Database, keys: SealingKeys): Promise<number> {
  const [newest] = await db.run((orm) =>
    orm.select({ version: sealingKey.version }).from(sealingKey).orderBy(desc(sealingKey.version)).limit(1),
  );
  if (!newest || !keys.has(newest.version)) return 0;
  const { version } = newest;
  return (
    (await resealSecrets(db, keys, version)) +
    (await resealSigningKeys(db, keys, version)) +
    (await resealDeviceKeys(db, keys, version))
  );
}

async function resealSecrets(db: Database, keys: SealingKeys, version: number): Promise<number> {
  const rows = await db.run((orm) =>
    orm.select().from(applicationSecret).where(lt(applicationSecret.sealingVersion, version)).limit(RESEAL_CHUNK_ROWS),
  );
  for (const { id, applicationId, sealed, sealingVersion } of rows) {
    const label: SealLabel = { purpose: "application-secret", applicationId, id };
    const resealed = await reseal(keys, label, sealed, sealingVersion, version);
    await db.run((orm) =>
      orm
        .update(applicationSecret)
        .set({ sealed: resealed, sealingVersion: version })
        .where(and(eq(applicationSecret.id, id), eq(applicationSecret.sealed, sealed))),
    );
  }
  return rows.length;
}

async function resealSigningKeys(db: Database, keys: SealingKeys, version: number): Promise<number> {
  const rows = await db.run((orm) =>
    orm.select().from(signingKey).where(lt(signingKey.sealingVersion, version)).limit(RESEAL_CHUNK_ROWS),
  );
  for (const { id, kid, applicationId, sealed, sealingVersion } of rows) {
    const label: SealLabel = { purpose: "signing-key", applicationId, id: kid };
    const resealed = await reseal(keys, label, sealed, sealingVersion, version);
    await db.run((orm) =>
      orm
        .update(signingKey)
        .set({ sealed: resealed, sealingVersion: version })
        .where(and(eq(signingKey.id, id), eq(signingKey.sealed, sealed))),
    );
  }
  return rows.length;
}

async function resealDeviceKeys(db: Database, keys: SealingKeys, version: number): Promise<number> {
  const rows = await db.run((orm) =>
    orm.select().from(application).where(lt(application.sealingVersion, version)).limit(RESEAL_CHUNK_ROWS),
  );
  for (const { id, sealedDeviceKey: sealed, sealingVersion } of rows) {
    const label: SealLabel = { purpose: "device-key", applicationId: id, id };
    const resealed = await reseal(keys, label, sealed, sealingVersion, version);
    await db.run((orm) =>
      orm
        .update(application)
        .set({ sealedDeviceKey: resealed, sealingVersion: version })
        .where(and(eq(application.id, id), eq(application.sealedDeviceKey, sealed))),
    );
  }
  return rows.length;
}

/** The plain value is in memory for the moment between the two operations, and nowhere else. */
async function reseal(
  keys: SealingKeys,
  label: SealLabel,
  sealed: string,
  fromVersion: number,
  toVersion: number,
): Promise<string> {
  const plaintext = await open(await keys.get(fromVersion), label, sealed);
  try {
    return await seal(await keys.getPublic(toVersion), label, plaintext);
  } finally {
    plaintext.fill(0);
  }
}
