import { asc, count, gt, max, sql } from "drizzle-orm";
import { application, applicationSecret, sealingKey, signingKey } from "../../storage/schema.ts";
import { ADMIN, Mistake } from "../mistake.ts";
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
  return keys.map(({ version, createdAt }, place) => ({
    version,
    newest: place === keys.length - 1,
    values: valuesOf(version),
    createdAt: isoTime(createdAt),
  }));
}

/** The newest version, or 0. */
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
 * @throws Mistake while a value needs it, or when it is the newest
 */
export async function removeSealingKey(database: Database, version: number): Promise<void> {
  const unused = SEALED.map(
    (table) => sql`NOT EXISTS (SELECT 1 FROM ${table} WHERE ${table.sealingVersion} = ${version})`,
  );
  const hasNewer = sql`EXISTS (SELECT 1 FROM sealing_key AS newer WHERE newer.version > ${version})`;
  await database.run((orm) =>
    orm
      .delete(sealingKey)
      .where(sql`${sealingKey.version} = ${version} AND ${hasNewer} AND ${sql.join(unused, sql` AND `)}`),
  );
  const left = (await listSealingKeys(database)).find((key) => key.version === version);
  if (left === undefined) return;
  if (left.newest) throw new Mistake(`Sealing key ${version} is the newest: run ${ADMIN} sealing-key rotate first.`);
  throw new Mistake(`${left.values} values still need sealing key ${version}: run ${ADMIN} sealing-key reseal first.`);
}
