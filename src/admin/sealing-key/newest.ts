import { desc, eq, sql } from "drizzle-orm";
import type { Sealer } from "../../shared/credentials.ts";
import { sealingKey } from "../../shared/schema.ts";
import { importSealingPublicKey, seal } from "../../shared/sealing.ts";
import { UserError } from "../command-line/errors.ts";
import { ADMIN } from "../command-line/shell.ts";
import { type Database, insertWhere } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";

/**
 * Seals to the newest sealing key, so that only the Worker can open it.
 *
 * @throws UserError when the environment has no sealing key yet
 */
export async function newestSealer(database: Database): Promise<Sealer> {
  const newest = await readNewest(database);
  if (newest === undefined) throw new UserError(`There is no sealing key yet: run ${ADMIN} init, with the same --env.`);
  const key = await importSealingPublicKey(newest.publicKey);
  return { version: newest.version, seal: (label, plaintext) => seal(key, label, plaintext) };
}

/** A home's newest sealing key. */
async function readNewest(database: Database) {
  const [newest] = await database.run((orm) =>
    orm.select().from(sealingKey).orderBy(desc(sealingKey.version)).limit(1),
  );
  return newest;
}

/** The newest version of all homes, or 0. */
export const newestVersion = async (homes: Homes): Promise<number> => (await findNewest(homes)).key?.version ?? 0;

/**
 * Publishes the public half of the newest sealing key in every home that lacks it: the key or the home is new, a run was
 * killed, or the home was restored. Older keys are not published, because nothing in that home needs them.
 */
export async function publishNewestEverywhere(homes: Homes): Promise<void> {
  const { key, lacking } = await findNewest(homes);
  if (key === undefined) return;
  await homes.map(async (home) => {
    if (lacking.includes(home)) await publishNewest(home.database, key);
  });
}

/** The newest sealing key of all homes, undefined when there is none, and the homes that lack it. */
export async function findNewest(homes: Homes) {
  const newest = await homes.map(({ database }) => readNewest(database));
  const key = newest.reduce((best, each) => ((each?.version ?? 0) > (best?.version ?? 0) ? each : best));
  return { key, lacking: homes.all.filter((_, index) => newest[index]?.version !== key?.version) };
}

/** Publishes a key in one home, unless the home has this version or a later one. @returns whether the home has it */
export async function publishNewest(
  database: Database,
  { version, publicKey, createdAt }: typeof sealingKey.$inferSelect,
): Promise<boolean> {
  const isNewest = sql`NOT EXISTS (SELECT 1 FROM ${sealingKey} WHERE ${sealingKey.version} >= ${version})`;
  const [, rows] = await database.run((orm) =>
    orm.batch([
      insertWhere(orm, sealingKey, { version, publicKey, createdAt }, sql`WHERE ${isNewest}`).onConflictDoNothing(),
      orm.select().from(sealingKey).where(eq(sealingKey.version, version)),
    ]),
  );
  return rows[0]?.publicKey === publicKey;
}
