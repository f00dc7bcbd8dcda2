import { sealingKey } from "../../shared/schema.ts";
import { UserError } from "../command-line/errors.ts";
import type { Homes } from "../platform/homes.ts";
import { formatPath, type LocalState } from "../platform/paths.ts";
import { ensureLocalKey, publicHalf, readLocalKeys } from "../platform/sealing-key-file.ts";
import { newestVersion, publishNewestEverywhere } from "./newest.ts";

/**
 * Makes sure that every local home has the newest sealing key and that the key file holds the private half of every key in
 * D1. The file is written first: what is sealed to a public half whose private half was never stored would be lost.
 */
export async function ensureLocalSealing(homes: Homes, state: LocalState): Promise<void> {
  let rows = await readRows(homes);
  if (rows.flat().length === 0) {
    await ensureLocalKey(state, 1);
    // All keys of the file: it may have outlived the database, and its newest key stays the newest.
    await publishKeys(homes, readLocalKeys(state));
    rows = await readRows(homes);
  }
  const newest = Math.max(...rows.flat().map(({ version }) => version));
  if (rows.some((ofHome) => ofHome.every(({ version }) => version !== newest))) await publishNewestEverywhere(homes);
  const keys = readLocalKeys(state);
  for (const { version, publicKey } of rows.flat()) {
    const privateKey = keys.get(version);
    if (privateKey === undefined || publicHalf(privateKey) !== publicKey) {
      throw new UserError(
        `${formatPath(state.sealingKeys)} does not hold the sealing key ${version} of the local database: put that file back, or start over with npm run reset.`,
      );
    }
  }
}

/**
 * Creates the next local sealing key. Two runs at once create the same one, and the next run finishes what a killed one
 * began.
 *
 * @returns its version
 */
export async function rotateLocalSealingKey(homes: Homes, state: LocalState): Promise<number> {
  await ensureLocalSealing(homes, state);
  const version = (await newestVersion(homes)) + 1;
  await publishKeys(homes, [[version, await ensureLocalKey(state, version)]]);
  return version;
}

const readRows = (homes: Homes) => homes.map(({ database }) => database.run((orm) => orm.select().from(sealingKey)));

/** Publishes the public halves of keys of the file in every home; a version that exists stays as it is. */
async function publishKeys(homes: Homes, keys: Iterable<readonly [version: number, privateKey: string]>) {
  const createdAt = Date.now();
  const rows = Array.from(keys, ([version, key]) => ({ version, publicKey: publicHalf(key), createdAt }));
  await homes.map(({ database }) => database.run((orm) => orm.insert(sealingKey).values(rows).onConflictDoNothing()));
}
