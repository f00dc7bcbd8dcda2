import { sealingKey } from "../shared/schema.ts";
import { UserError } from "./errors.ts";
import type { Database } from "./platform/database.ts";
import { type LocalState, shownPath } from "./platform/paths.ts";
import { ensureLocalKey, publicHalf, readLocalKeys } from "./platform/sealing-key-file.ts";
import { newestVersion } from "./sealing-key-newest.ts";

/**
 * Makes sure that local D1 has a sealing key and that the key file holds the private half of every key in D1. The file
 * is written first: what is sealed to a public half whose private half was never stored would be lost.
 */
export async function ensureLocalSealing(database: Database, state: LocalState): Promise<void> {
  let rows = await readRows(database);
  if (rows.length === 0) {
    await ensureLocalKey(state, 1);
    // All keys of the file: it may have outlived the database, and its newest key stays the newest.
    const keys = [...readLocalKeys(state)].map(([version, key]) => ({ version, publicKey: publicHalf(key) }));
    await insertSealingKeys(database, keys);
    rows = await readRows(database);
  }
  const keys = readLocalKeys(state);
  for (const { version, publicKey } of rows) {
    const privateKey = keys.get(version);
    if (privateKey === undefined || publicHalf(privateKey) !== publicKey) {
      throw new UserError(
        `${shownPath(state.sealingKeys)} does not hold the sealing key ${version} of the local database: put that file back, or start over with npm run reset.`,
      );
    }
  }
}

/**
 * Makes the next local sealing key. Two runs at once make the same one, and the next run finishes what a killed one
 * began.
 *
 * @returns its version
 */
export async function rotateLocalSealingKey(database: Database, state: LocalState): Promise<number> {
  await ensureLocalSealing(database, state);
  const version = (await newestVersion(database)) + 1;
  const privateKey = await ensureLocalKey(state, version);
  await insertSealingKeys(database, [{ version, publicKey: publicHalf(privateKey) }]);
  return version;
}

const readRows = (database: Database) => database.run((orm) => orm.select().from(sealingKey));

/** Inserts public halves; a version that exists stays as it is. */
export async function insertSealingKeys(
  database: Database,
  keys: readonly { version: number; publicKey: string }[],
): Promise<void> {
  const createdAt = Date.now();
  const rows = keys.map((key) => ({ ...key, createdAt }));
  await database.run((orm) => orm.insert(sealingKey).values(rows).onConflictDoNothing());
}
