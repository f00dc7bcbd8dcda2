import { asc, count } from "drizzle-orm";
import { application, applicationSecret, sealingKey, signingKey } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { counted } from "../command-line/output.ts";
import type { Homes } from "../platform/homes.ts";

/** The tables whose rows each hold one sealed value. */
export const SEALED = [application, applicationSecret, signingKey] as const;

/** The sealing keys of all homes, oldest first. */
export const listSealingKeys = async (homes: Homes) => (await readSealingKeys(homes)).keys;

export async function readSealingKeys(homes: Homes) {
  const found = await homes.map(({ database }) =>
    database.run((orm) =>
      orm.batch([
        orm.select().from(sealingKey).orderBy(asc(sealingKey.version)),
        ...SEALED.map((table) =>
          orm.select({ version: table.sealingVersion, values: count() }).from(table).groupBy(table.sealingVersion),
        ),
      ]),
    ),
  );
  const uses = found.flatMap(([, ...ofHome]) => ofHome.flat());
  const valuesOf = (version: number) => uses.reduce((sum, use) => sum + (use.version === version ? use.values : 0), 0);
  const rows = found.flatMap(([keys]) => keys);
  const versions = [...new Set(rows.map(({ version }) => version))].toSorted((one, other) => one - other);
  const keys = versions.map((version, index) => ({
    version,
    /** Whether new values are sealed to this key. */
    newest: index === versions.length - 1,
    /** Sealed values that only this key opens. */
    values: valuesOf(version),
    createdAt: isoTime(rows.find((row) => row.version === version)?.createdAt ?? null),
  }));
  const publicKeyOf = (version: number) => rows.find((row) => row.version === version)?.publicKey ?? "";
  return { keys, valuesOf, publicKeyOf };
}

/** `1 value still needs`, `2 values still need`. */
export const valuesStillNeed = (values: number): string =>
  `${counted(values, "value")} still ${values === 1 ? "needs" : "need"}`;

/** How many values are not sealed to the newest key. */
export async function countOldValues(homes: Homes): Promise<number> {
  const keys = await listSealingKeys(homes);
  return keys.filter(({ newest }) => !newest).reduce((sum, { values }) => sum + values, 0);
}
