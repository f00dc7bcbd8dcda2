import { desc, gt, max } from "drizzle-orm";
import type { Sealer } from "../shared/credentials.ts";
import { sealingKey } from "../shared/schema.ts";
import { importSealingPublicKey, seal } from "../shared/sealing.ts";
import { UserError } from "./errors.ts";
import type { Database } from "./platform/database.ts";
import { ADMIN } from "./shell.ts";

/**
 * Seals to the newest sealing key, so that only the Worker can open it.
 *
 * @throws UserError when the environment has no sealing key yet
 */
export async function newestSealer(database: Database): Promise<Sealer> {
  const [newest] = await database.run((orm) =>
    orm.select().from(sealingKey).where(gt(sealingKey.version, 0)).orderBy(desc(sealingKey.version)).limit(1),
  );
  if (newest === undefined) throw new UserError(`There is no sealing key yet: run ${ADMIN} init, with the same --env.`);
  const key = await importSealingPublicKey(newest.publicKey);
  return { version: newest.version, seal: (label, plaintext) => seal(key, label, plaintext) };
}

/** The newest version, or 0. Release 1.0 kept claims on versions among the keys, under negative numbers. */
export async function newestVersion(database: Database): Promise<number> {
  const [row] = await database.run((orm) => orm.select({ version: max(sealingKey.version) }).from(sealingKey));
  return Math.max(0, row?.version ?? 0);
}
