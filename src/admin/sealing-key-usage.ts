import { asc, count, gt } from "drizzle-orm";
import { application, applicationSecret, sealingKey, signingKey } from "../shared/schema.ts";
import { counted, isoTime } from "./output.ts";
import type { Database } from "./platform/database.ts";

/** A sealing key as the commands print it. */
export interface ShownSealingKey {
  version: number;
  /** Whether new values are sealed to this key. */
  newest: boolean;
  /** Sealed values that only this key opens. */
  values: number;
  createdAt: string | null;
}

/** The tables whose rows each hold one sealed value. */
export const SEALED = [application, applicationSecret, signingKey] as const;

/** The sealing keys, oldest first. */
export async function listSealingKeys(database: Database): Promise<ShownSealingKey[]> {
  return (await readSealingKeys(database)).keys;
}

export async function readSealingKeys(database: Database) {
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

/** `1 value still needs`, `2 values still need`. */
export const valuesStillNeed = (values: number): string =>
  `${counted(values, "value")} still ${values === 1 ? "needs" : "need"}`;

/** How many values are not sealed to the newest key. */
export async function countOldValues(database: Database): Promise<number> {
  const keys = await listSealingKeys(database);
  return keys.filter(({ newest }) => !newest).reduce((sum, { values }) => sum + values, 0);
}
