import { asc, count, gt, max, sql } from "drizzle-orm";
import { application, applicationSecret, sealingKey, signingKey } from "../../shared/schema.ts";
import { ADMIN, UserError } from "../errors.ts";
import { isoTime } from "../output.ts";
import type { Database } from "../platform/database.ts";

/** A sealing key as the commands print it. */
export interface ShownSealingKey {
  version: number;
  /** Whether new values are sealed to this one. */
  newest: boolean;
  /** Sealed values that only this key opens. */
  values: number;
  createdAt: string | null;
}

/** The tables with sealed values, each with one in a row. */
const SEALED = [application, applicationSecret, signingKey] as const;

/** The sealing keys, oldest first. */
export async function listSealingKeys(database: Database): Promise<ShownSealingKey[]> {
  return (await readSealingKeys(database)).keys;
}

async function readSealingKeys(database: Database) {
  const [keys, ...uses] = await database.run((orm) =>
    orm.batch([
      orm.select().from(sealingKey).where(gt(sealingKey.version, 0)).orderBy(asc(sealingKey.version)),
      ...SEALED.map((table) =>
        orm.select({ version: table.sealingVersion, values: count() }).from(table).groupBy(table.sealingVersion),
      ),
    ]),
  );
  const valuesOf = (version: number) =>
    uses.flat().reduce((sum, use) => sum + (use.version === version ? use.values : 0), 0);
  const shown: ShownSealingKey[] = keys.map(({ version, createdAt }, index) => ({
    version,
    newest: index === keys.length - 1,
    values: valuesOf(version),
    createdAt: isoTime(createdAt),
  }));
  return { keys: shown, valuesOf };
}

/** The newest version, or 0. Release 1.0 kept claims on versions among the keys, under negative numbers. */
export async function newestVersion(database: Database): Promise<number> {
  const [row] = await database.run((orm) => orm.select({ version: max(sealingKey.version) }).from(sealingKey));
  return Math.max(0, row?.version ?? 0);
}

/** Sealed values that are not sealed to the newest key. */
export async function countOldValues(database: Database): Promise<number> {
  const keys = await listSealingKeys(database);
  return keys.filter(({ newest }) => !newest).reduce((sum, { values }) => sum + values, 0);
}

/**
 * Takes a sealing key's public half out of D1, so that nothing is sealed to it any more.
 *
 * @returns whether it was there: false for a version that was removed before
 * @throws UserError while a value needs it, when it is the newest, and when there was never such a version
 */
export async function removeSealingKey(database: Database, version: number): Promise<boolean> {
  const before = (await listSealingKeys(database)).map((key) => key.version);
  if (version > Math.max(0, ...before)) throw unknownSealingKey(version);
  const unused = SEALED.map(
    (table) => sql`NOT EXISTS (SELECT 1 FROM ${table} WHERE ${table.sealingVersion} = ${version})`,
  );
  const hasNewer = sql`EXISTS (SELECT 1 FROM sealing_key AS newer WHERE newer.version > ${version})`;
  await database.run((orm) =>
    orm
      .delete(sealingKey)
      .where(sql`${sealingKey.version} = ${version} AND ${hasNewer} AND ${sql.join(unused, sql` AND `)}`),
  );
  const { keys, valuesOf } = await readSealingKeys(database);
  if (valuesOf(version) === 0 && keys.every((key) => key.version !== version)) return before.includes(version);
  if (keys.at(-1)?.version === version) {
    throw new UserError(`Sealing key ${version} is the newest: run ${ADMIN} sealing-key rotate first.`);
  }
  throw new UserError(
    `${valuesOf(version)} values still need sealing key ${version}: run ${ADMIN} sealing-key reseal first.`,
  );
}

export const unknownSealingKey = (version: number): UserError =>
  new UserError(`There is no sealing key ${version}: see ${ADMIN} sealing-key list.`);
